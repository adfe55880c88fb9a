#!/usr/bin/env python3
"""The recipes of modules/packaging: what they ask for is what the build asks for, and EasyBuild's parser takes its own.

EasyBuild is asked where it is importable. The Spack recipe is run against stand-ins for Spack's directives, since Spack
is not a Python package: that shows names and versions, not that Spack would build it.
"""
import collections
import importlib.util
import pathlib
import re
import subprocess
import sys
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "modules" / "packaging"
EASYCONFIG = next((PACKAGING / "easybuild").glob("*.eb"))
SPACK_RECIPE = PACKAGING / "spack/spack_repo/hetseq/packages/hetseq/package.py"


def cmake_text(*names):
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


def matched(pattern, text):
    found = re.search(pattern, text)
    assert found, f"no {pattern}"
    return found[1]


VERSION = matched(r"project\(hetseq VERSION ([\d.]+)", cmake_text("CMakeLists.txt"))
LIBTORCH = matched(r"HETSEQ_LIBTORCH_MINIMUM ([\d.]+)", cmake_text("cmake/HetseqChecks.cmake"))
USUAL_LIBTORCH = matched(r"set\(hetseq_libtorch_default ([\d.]+)\)", cmake_text("cmake/FindLibTorch.cmake"))
BUILD_OPTIONS = set(re.findall(r"(?:option|set)\((HETSEQ_[A-Z_]+)", cmake_text(
    "CMakeLists.txt", "cmake/HetseqInstall.cmake", "cmake/FindLibTorch.cmake")))


def plain(name):
    """A library's name without what package managers add: nlohmann-json, zlib-api."""
    return re.sub(r"[-_]", "", name.lower().removesuffix("-api"))


def needed_libraries():
    """What the build looks for, but for what a toolchain or a recipe's own lines provide."""
    text = cmake_text("cmake/HetseqDependencies.cmake")
    looked_for = (re.findall(r"find_package\((\w+)", text) + re.findall(r"find_path\(\w+ (\w+)\.h\)", text) +
                  re.findall(r"find_library\(\w+ (\w+)\)", text))
    return {plain(name) for name in looked_for} - {"libtorch", "threads", "mpi", "cudatoolkit", "nccl"}


class Easyconfig(unittest.TestCase):
    def setUp(self):
        self.values = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz"}
        exec(compile(EASYCONFIG.read_text(encoding="utf-8"), EASYCONFIG, "exec"), self.values)  # as EasyBuild does

    def test_is_of_this_version(self):
        self.assertEqual(self.values["version"], VERSION)
        toolchain = self.values["toolchain"]
        self.assertEqual(EASYCONFIG.name, f"hetseq-{VERSION}-{toolchain['name']}-{toolchain['version']}.eb")

    def test_sets_options_that_the_build_has(self):
        options = set(re.findall(r"-D(HETSEQ_\w+)", self.values["configopts"]))
        self.assertTrue(options)
        self.assertLessEqual(options, BUILD_OPTIONS)

    def test_names_all_libraries(self):
        given = {plain(name) for name, _ in self.values["dependencies"] + self.values["builddependencies"]}
        self.assertLessEqual(needed_libraries(), given)

    def test_each_source_has_its_checksum(self):
        files = [source["filename"] for source in self.values["sources"]]
        self.assertEqual([list(checksum) for checksum in self.values["checksums"]], [[file] for file in files])
        self.assertIn(f"torch-{USUAL_LIBTORCH}-", files[1])

    def test_easybuild_takes_it(self):
        if importlib.util.find_spec("easybuild") is None:
            self.skipTest("EasyBuild is not here")
        code = ("from easybuild.tools.options import set_up_configuration\n"
                "from easybuild.framework.easyconfig.parser import EasyConfigParser\n"
                "set_up_configuration(args=['--allow-use-as-root-and-accept-consequences'], silent=True)\n"
                f"print(EasyConfigParser({str(EASYCONFIG)!r}).get_config_dict()['name'])")
        run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
        self.assertEqual(run.stdout.strip(), "hetseq", run.stderr)


class SpackRecipe(unittest.TestCase):
    def setUp(self):
        self.calls = collections.defaultdict(list)
        package = types.ModuleType("spack.package")
        for name in ("version", "depends_on", "conflicts", "generator"):
            setattr(package, name, lambda *args, _name=name, **given: self.calls[_name].append((args, given)))
        package.when = lambda _: unittest.mock.MagicMock()
        modules = {"spack": types.ModuleType("spack"), "spack.package": package}
        for path, members in (("cmake", {"CMakePackage": type("CMakePackage", (), {})}),
                              ("cuda", {"CudaPackage": type("CudaPackage", (), {"cuda_arch_values": ("70", "80")})})):
            module = types.ModuleType(path)
            vars(module).update(members)
            modules[f"spack_repo.builtin.build_systems.{path}"] = module
        values = {"__file__": str(SPACK_RECIPE)}
        with unittest.mock.patch.dict(sys.modules, modules):
            exec(compile(SPACK_RECIPE.read_text(encoding="utf-8"), SPACK_RECIPE, "exec"), values)
        self.recipe = values["Hetseq"]

    def dependencies(self):
        return [args[0] for args, _ in self.calls["depends_on"]]

    def test_builds_the_checkout_it_lies_in(self):
        self.assertEqual(self.recipe.git, ROOT.as_uri())

    def test_names_all_libraries(self):
        given = {plain(re.split(r"[@+~ ]", spec)[0]) for spec in self.dependencies()}
        self.assertLessEqual(needed_libraries(), given)
        self.assertTrue([spec for spec in self.dependencies() if spec.startswith(f"py-torch@{LIBTORCH}:")])

    def test_sets_options_that_the_build_has(self):
        defined = {}
        self_ = types.SimpleNamespace(
            define=defined.__setitem__, define_from_variant=defined.__setitem__,
            spec=unittest.mock.MagicMock(satisfies=lambda _: True))
        self_.spec.variants.__getitem__.return_value.value = ("70", "80")
        self.recipe.cmake_args(self_)
        self.assertEqual(defined["CMAKE_CUDA_ARCHITECTURES"], "70;80")
        self.assertLessEqual({name for name in defined if name.startswith("HETSEQ_")}, BUILD_OPTIONS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
