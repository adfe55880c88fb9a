"""What the scripts beside this one time calls with."""
import statistics
import time


def milliseconds(call, seconds):
    """Of a call: the mean over about `seconds`."""
    times, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        call()
        times += 1
    return 1000 * (time.perf_counter() - begin) / times


def ratio(above, below):
    """The median of the ratios within each round, with their range."""
    values = [a / b for a, b in zip(above, below)]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
