import os
import sys
import time
import traceback

from hetseq.run import main, rank
from hetseq.task import TaskError

if __name__ == "__main__":
    try:
        code = main()
    except Exception as error:  # the task's file: the trainer's own errors are told by code
        if rank() > 0:  # where rank 0 met it too, the launcher ends this one before it says the same
            time.sleep(10)
        text = f"{error}\n" if isinstance(error, TaskError) else traceback.format_exc()
        print(f"hetseq: {text}", end="", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(78)  # at once: to take torch down lasts seconds
    sys.stdout.flush()
    sys.exit(code)
