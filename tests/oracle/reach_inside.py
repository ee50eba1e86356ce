"""Run inside a sandbox: try what is asked for on each path, and report what worked. Standard library only.

Reads one line of JSON, a list of [action, path, may be rearranged]; writes one with a list of booleans. What
was created is removed, and what was renamed is put back.
"""

import json
import os
import socket
import stat
import sys


def write_there(path):
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        create(os.path.realpath(path))
        return
    if stat.S_ISDIR(mode):
        create(os.path.join(path, ".reach-oracle"))
    elif stat.S_ISREG(mode):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    else:
        raise OSError("not tried")


def create(path):
    """Create a file with the directories above it, and remove all of them."""
    made = []
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        made.append(above)
        above = os.path.dirname(above)
    try:
        for directory in reversed(made):
            os.mkdir(directory)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(path)
    finally:
        for directory in made:
            if os.path.isdir(directory):
                os.rmdir(directory)


def read_there(path):
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def connect_there(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def worked(operation, path):
    try:
        operation(path)
        return True
    except (OSError, ValueError):
        return False


def with_modes(operation, path):
    """Try again after the modes of all components were opened, as far as this is allowed."""
    changed = []
    parts = os.path.realpath(path).split("/")
    for number in range(2, len(parts) + 1):
        each = "/".join(parts[:number])
        try:
            mode = stat.S_IMODE(os.stat(each).st_mode)
            os.chmod(each, mode | 0o700)
            changed.append((each, mode))
        except OSError:
            pass
    try:
        return worked(operation, path)
    finally:
        for each, mode in reversed(changed):
            os.chmod(each, mode)


def replaced(path):
    """Rename each component in turn, and back."""
    parts = os.path.normpath(path).split("/")
    for number in range(len(parts), 1, -1):
        each = "/".join(parts[:number])
        other = each + ".reach-moved"
        try:
            os.rename(each, other)
        except OSError:
            continue
        os.rename(other, each)
        return True
    return False


def attempt(action, path, rearrange):
    operation = {"write": write_there, "read": read_there, "connect": connect_there}[action]
    if worked(operation, path):
        return True
    if not rearrange:
        return False
    return with_modes(operation, path) or (action == "write" and replaced(path))


print(json.dumps({"pid": os.getpid()}), flush=True)
wanted = json.loads(sys.stdin.readline())
print(json.dumps([attempt(*each) for each in wanted]), flush=True)
