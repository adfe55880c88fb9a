import os
import sys

from hetseq.run import main
from hetseq.task import TaskError

if __name__ == "__main__":
    try:
        code = main()
    except TaskError as error:
        print(f"hetseq: {error}", file=sys.stderr)
        code = 78
    sys.stdout.flush()
    sys.exit(code)
