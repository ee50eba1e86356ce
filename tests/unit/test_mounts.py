"""Mount tables: read from mountinfo, and resolved as the kernel does."""

import os
import posixpath
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentdash.collect.processes import linux
from agentdash.collect.processes.path_rights import PathRights, credentials_of
from agentdash.model.state_paths import Mount, MountTable

DATA = Path(__file__).parent.parent / "data" / "mountinfo"


def table(name: str) -> MountTable:
    return MountTable(linux.parse_mounts((DATA / f"{name}.txt").read_bytes()))


@pytest.mark.parametrize(
    ("path", "allowed", "point"),
    [
        ("/home/dev/ws/src/new/file.py", True, "/home/dev/ws"),
        ("/home/dev/ws/.git/index.lock", False, "/home/dev/ws/.git"),
        ("/home/dev/ws/.gitignore", True, "/home/dev/ws"),
        ("/home/dev/ws2", False, "/"),
        ("/tmp/../tmp//x", True, "/tmp"),
        ("/dev/shm/x", True, "/dev"),
        ("/", False, "/"),
    ],
)
def test_mounts_of_codex_workspace_write(path: str, allowed: bool, point: str) -> None:
    mounts = table("codex-0.169.0-workspace-write")
    mount = mounts.of(path)
    assert (mounts.may_write(path), mount.point) == (allowed, point)


def test_parse_escapes_and_read_only_filesystems() -> None:
    lines = rb"""27 1 254:0 / / rw - ext4 /dev/vda rw
28 27 7:0 / /mnt/a\040b\134c\040d rw,relatime shared:7 master:2 - squashfs /dev/loop0 ro,errors=continue
29 27 7:0 / /mnt/\303\244 ro - ext4 /dev/x\040y rw
not a mount at all
30 27 0:1 / /odd rw"""
    read = linux.parse_mounts(lines)
    assert [(m.point, m.read_only, m.fstype) for m in read] == [
        ("/", False, "ext4"),
        ("/mnt/a b\\c d", True, "squashfs"),
        ("/mnt/ä", True, "ext4"),
    ]


def test_mount_that_is_stacked_on_a_root_is_never_seen() -> None:
    root = Mount(1, 0, "/")
    assert MountTable((root, Mount(5, 1, "/"))).of("/x") == root


def test_mount_table_of_a_chroot() -> None:
    mounts = MountTable((proc := Mount(7, 3, "/proc"), below := Mount(8, 7, "/proc/sys")))
    assert (mounts.of("/proc/self"), mounts.of("/proc/sys/x")) == (proc, below)
    assert (mounts.of("/etc"), mounts.may_write("/etc")) == (None, None)
    assert MountTable((Mount(1, 0, "/"),)).may_write("relative") is None


names = st.sampled_from("abc")
places = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(st.tuples(places, st.booleans()), max_size=12), places)
def test_mount_lookup_agrees_with_mounting_in_order(made: list[tuple[str, bool]], path: str) -> None:
    """The reference keeps the visible mounts: mounting hides everything at and below the place."""
    mounts = [Mount(1, 0, "/")]
    visible: dict[str, Mount] = {}
    for ident, (place, read_only) in enumerate(made, start=2):
        parent = _deepest(visible, place) or mounts[0]
        mounts.append(mount := Mount(ident, parent.id, place, read_only))
        visible = {p: m for p, m in visible.items() if p != place and not p.startswith(place + "/")} | {
            place: mount
        }
    assert MountTable(mounts).of(path) == (_deepest(visible, path) or mounts[0])


def _deepest(visible: dict[str, Mount], path: str) -> Mount | None:
    while path != "/":
        if path in visible:
            return visible[path]
        path = posixpath.dirname(path)
    return None


# ---------------------------------------------------------------- modes and owners


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_write_access_of_own_process(tmp_path: Path) -> None:
    me = os.getpid()
    assert credentials_of(me) is not None
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("")
    (tmp_path / "link").symlink_to("real/../real")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "tty").symlink_to("/dev/null")
    everything = (Mount(1, 0, "/"),)  # these tests may run in a chroot, whose table has no root
    for path in ("real", "link/new/deep", "link/file", "link/../real/./file", "tty", "missing/dir"):
        assert PathRights(me, everything).can_write(f"{tmp_path}/{path}").verdict == "allowed", path
    for path in ("loop/x", "real/file/below"):
        assert PathRights(me).can_write(f"{tmp_path}/{path}").verdict == "unknown", path
    read_only = (Mount(1, 0, "/"), Mount(2, 1, str(tmp_path.resolve() / "real"), read_only=True))
    assert PathRights(me, read_only).can_write(f"{tmp_path}/link/new").verdict == "read-only-mount"
    assert PathRights(me, read_only).can_write(f"{tmp_path}/other").verdict == "allowed"
    assert PathRights(2**22 + 1).can_write("/tmp").verdict == "unknown"
