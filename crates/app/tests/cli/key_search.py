"""Searches everything that a process in a sandbox can read for keys, and prints where it found which as JSON.

The keys are given backwards, so that neither this text nor its arguments contain them. One of them is planted here: in the
environment and in the memory of other processes and in files. A search that does not find it proves nothing.
"""

import json
import os
import subprocess
import sys

KEYS = {name: key[::-1].encode() for name, key in json.loads(sys.argv[1]).items()}
CHUNK = 1 << 20
# The machine's own programs, and what is not a file.
SKIPPED = {"/usr", "/proc", "/sys", "/dev", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
IN_MEMORY = "import sys, time; key = sys.argv[1][::-1]; print('ready', flush=True); time.sleep(600)"


def plant():
    backwards = json.loads(sys.argv[1])["planted"]
    key = backwards[::-1]
    in_environment = subprocess.Popen(["sleep", "600"], env={"PLANTED": key})
    in_memory = subprocess.Popen([sys.executable, "-c", IN_MEMORY, backwards], stdout=subprocess.PIPE)
    in_memory.stdout.readline()
    for folder in ("/tmp", os.path.expanduser("~"), "/workspace"):
        with open(os.path.join(folder, ".planted.txt"), "w") as file:
            file.write("key = " + key)
    return [in_environment, in_memory]


def pieces(file):
    """Pieces that overlap, so that no key is cut in two."""
    overlap, tail = max(map(len, KEYS.values())) - 1, b""
    while True:
        try:
            piece = file.read(CHUNK)
        except OSError:
            return
        if not piece:
            return
        yield tail + piece
        tail = piece[-overlap:]


def found_in(file):
    found, size = set(), 0
    for piece in pieces(file):
        size += len(piece)
        found.update(name for name, key in KEYS.items() if key in piece)
    return found, size


def memory(pid):
    """What is in memory of a process, region by region."""
    found, size, region = set(), 0, None
    overlap = max(map(len, KEYS.values())) - 1
    with open(f"/proc/{pid}/smaps") as regions, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in regions:
            words = line.split()
            if not words[0].endswith(":"):
                start, end = (int(number, 16) for number in words[0].split("-"))
                region = (start, end) if words[1].startswith("r") else None
            elif words[0] == "Rss:" and region and int(words[1]) > 0:
                start, end = region
                while start < end:
                    try:
                        mem.seek(start)
                        piece = mem.read(min(CHUNK + overlap, end - start))
                    except (OSError, OverflowError):
                        break
                    size += len(piece)
                    found.update(name for name, key in KEYS.items() if key in piece)
                    start += CHUNK
    return found, size


def search():
    places, processes = [], []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        seen = {"pid": pid, "program": "", "memory": 0}
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    text = file.read()
            except OSError:
                continue
            if name == "cmdline":
                seen["program"] = text.replace(b"\0", b" ").decode(errors="replace")
            places += [[f"process {name}", key] for key, value in KEYS.items() if value in text]
        try:
            found, seen["memory"] = memory(pid)
            places += [["process memory", key] for key in found]
        except OSError:
            pass
        processes.append(seen)
    files = 0
    for top in os.listdir("/"):
        if "/" + top in SKIPPED:
            continue
        for folder, _, names in os.walk("/" + top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        places += [[path, key] for key in found_in(file)[0]]
                    files += 1
                except OSError:
                    continue
    return {"places": places, "processes": processes, "files": files}


planted = plant()
try:
    result = search()
finally:
    for process in planted:
        process.kill()
with open("/workspace/found.json.new", "w") as out:
    json.dump(result, out)
os.rename("/workspace/found.json.new", "/workspace/found.json")
