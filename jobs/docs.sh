#!/usr/bin/env bash
# Makes a site of docs/ that can be searched, in build/site, with MkDocs and its theme Material from PyPI. A link that leads
# nowhere is an error.
set -euo pipefail
source "$(dirname "$0")/common.sh"
usage_only 'usage: jobs/docs.sh' "$@"

tools=build/docs-tools
if [[ ! -e $tools/.complete ]]; then
  say "installing MkDocs into $tools"
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet 'mkdocs==1.6.*' 'mkdocs-material==9.*'
  touch "$tools/.complete"
fi

cat >build/mkdocs.yml <<EOF
site_name: hetseq
docs_dir: $PWD/docs
site_dir: $PWD/build/site
use_directory_urls: false # pages can be opened without a server
theme:
  name: material
  font: false # none from another site
  features: [content.code.copy, navigation.top, search.highlight, search.suggest]
plugins: [search]
markdown_extensions: [tables, toc]
validation: {links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}}
EOF
NO_MKDOCS_2_WARNING=1 "$tools/bin/mkdocs" build --quiet --strict --config-file build/mkdocs.yml
say 'the site is build/site/index.html'
