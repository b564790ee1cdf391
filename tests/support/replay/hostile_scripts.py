"""Scripts of Python, without Spark, that would harm data. Each is here with what a refusal has to name.

`D` is the folder of the data; the current folder is the user's own, with `notes.txt` and `sub`.
"""

from __future__ import annotations

__all__ = ["HOSTILE", "PRELUDE"]

PRELUDE = "import os, pathlib, shutil, sys\nD = sys.argv[1]\n"

#: Name -> (script, what the refusal names).
HOSTILE: dict[str, tuple[str, str]] = {
    "open_w": ("open(f'{D}/in.txt', 'w').write('x')", "in.txt"),
    "open_append": ("open(f'{D}/in.txt', 'a').write('x')", "in.txt"),
    "open_plus": ("open(f'{D}/in.txt', 'r+').write('x')", "in.txt"),
    "open_exclusive_new": ("open(f'{D}/new.txt', 'x').write('x')", "new.txt"),
    "open_bytes_path": ("open(os.fsencode(f'{D}/in.txt'), 'wb')", "in.txt"),
    "own_report": ("open('report.csv', 'w').write('figures')", "report.csv"),
    "os_open_write": ("os.open(f'{D}/in.txt', os.O_WRONLY)", "in.txt"),
    "os_open_truncate_only": ("os.open(f'{D}/in.txt', os.O_RDONLY | os.O_TRUNC)", "in.txt"),
    "os_open_create": ("os.open(f'{D}/new', os.O_CREAT)", "new"),
    "os_open_nameless": ("os.write(os.open(D, os.O_TMPFILE | os.O_RDWR), b'x')", "data"),
    "rmtree": ("shutil.rmtree(D)", "data"),
    "rmtree_ignoring": ("shutil.rmtree(D, ignore_errors=True); sys.exit(7)", "data"),
    "remove": ("os.remove(f'{D}/in.txt')", "in.txt"),
    "unlink": ("os.unlink(f'{D}/link')", "link"),
    "rmdir": ("os.rmdir(f'{D}/empty')", "empty"),
    "removedirs": ("os.removedirs(f'{D}/empty')", "empty"),
    "rename": ("os.rename(f'{D}/in.txt', f'{D}/gone.txt')", "in.txt"),
    "rename_into_sandbox": ("import tempfile; os.rename(f'{D}/in.txt', tempfile.mkdtemp() + '/x')", "in.txt"),
    "rename_folder": ("os.rename(D, D + '2')", "data"),
    "replace_by_own": (
        "import tempfile; f = tempfile.NamedTemporaryFile(delete=False); os.replace(f.name, f'{D}/in.txt')",
        "in.txt",
    ),
    "move": ("shutil.move(f'{D}/in.txt', f'{D}/moved')", "in.txt"),
    "copy_over": ("shutil.copy(__file__, f'{D}/in.txt')", "in.txt"),
    "copytree_over": ("shutil.copytree(f'{D}/out', D, dirs_exist_ok=True)", "part-00000"),
    "truncate": ("os.truncate(f'{D}/in.txt', 0)", "in.txt"),
    "mkdir": ("os.mkdir(f'{D}/made')", "made"),
    "makedirs": ("os.makedirs('deep/er')", "deep"),
    "symlink_made": ("os.symlink('/etc/passwd', f'{D}/made')", "made"),
    "hardlink_made": ("os.link(f'{D}/in.txt', f'{D}/made')", "in.txt"),
    "hardlink_into_sandbox": (
        "import tempfile; n = tempfile.mkdtemp() + '/x'; os.link(f'{D}/in.txt', n); open(n, 'w').write('x')",
        "in.txt",
    ),
    "hardlink_existing": ("open(f'{D}/hard', 'w').write('x')", "hard"),
    "symlink_in_sandbox": (
        "import tempfile; n = tempfile.mkdtemp() + '/x'; os.symlink(f'{D}/in.txt', n); "
        "open(n, 'w').write('x')",
        "in.txt",
    ),
    "symlink_to_folder": (
        "import tempfile; n = tempfile.mkdtemp() + '/x'; os.symlink(D, n); open(n + '/in.txt', 'w')",
        "in.txt",
    ),
    "symlink_broken": (
        "import tempfile; n = tempfile.mkdtemp() + '/x'; os.symlink(f'{D}/new', n); open(n, 'w').write('x')",
        "new",
    ),
    "symlink_existing": ("open(f'{D}/link', 'w').write('x')", "in.txt"),
    "symlink_chain": (
        "import tempfile; n = tempfile.mkdtemp(); os.symlink('../../../data', n + '/a');"
        " os.symlink('a/in.txt', n + '/b'); open(n + '/b', 'a').write('x')",
        "in.txt",
    ),
    "relative": ("open('notes.txt', 'w').write('x')", "notes.txt"),
    "dots": ("open('sub/../../data/./in.txt', 'w').write('x')", "in.txt"),
    "chdir": ("os.chdir(D); open('in.txt', 'w').write('x')", "in.txt"),
    "fchdir": ("os.fchdir(os.open(D, os.O_RDONLY)); os.remove('in.txt')", "in.txt"),
    "chmod": ("os.chmod(f'{D}/in.txt', 0o777)", "in.txt"),
    "chmod_link": ("os.chmod(f'{D}/link', 0o777)", "link"),
    "fchmod": ("os.fchmod(os.open(f'{D}/in.txt', os.O_RDONLY), 0o777)", "in.txt"),
    "chown": ("os.chown(f'{D}/in.txt', 12345, 12345)", "in.txt"),
    "utime": ("os.utime(f'{D}/in.txt', (1, 1))", "in.txt"),
    "utime_link": ("os.utime(f'{D}/link', (1, 1), follow_symlinks=False)", "link"),
    "futime": ("os.utime(os.open(f'{D}/in.txt', os.O_RDONLY), (1, 1))", "in.txt"),
    "touch": ("pathlib.Path(f'{D}/in.txt').touch()", "in.txt"),
    "copystat": ("shutil.copystat(__file__, f'{D}/in.txt')", "in.txt"),
    "setxattr": ("os.setxattr(f'{D}/in.txt', 'user.a', b'b')", "in.txt"),
    "mkfifo": ("os.mkfifo(f'{D}/pipe')", "pipe"),
    "mknod": ("os.mknod(f'{D}/node')", "node"),
    "mknod_posix": ("import posix; posix.mknod(f'{D}/node')", "node"),
    "socket_file": ("import socket; socket.socket(socket.AF_UNIX).bind(f'{D}/sock')", "sock"),
    "pathlib_write": ("pathlib.Path(D, 'in.txt').write_text('x')", "in.txt"),
    "pathlib_unlink": ("pathlib.Path(D, 'in.txt').unlink()", "in.txt"),
    "pathlib_rename": ("pathlib.Path(D, 'in.txt').rename(pathlib.Path(D, 'b'))", "in.txt"),
    "pathlib_mkdir": ("pathlib.Path('a/b').mkdir(parents=True)", "a"),
    "dir_fd_remove": ("os.remove('in.txt', dir_fd=os.open(D, os.O_RDONLY))", "in.txt"),
    "dir_fd_open": (
        "import tempfile; os.chdir(tempfile.gettempdir());"
        " os.open('in.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=os.open(D, os.O_RDONLY))",
        "in.txt",
    ),
    "dir_fd_rename": (
        "import tempfile; os.chdir(tempfile.gettempdir()); d = os.open(D, os.O_RDONLY);"
        " os.rename('in.txt', 'out.txt', src_dir_fd=d, dst_dir_fd=d)",
        "in.txt",
    ),
    "opener": (
        "import tempfile; d = os.open(D, os.O_RDONLY); os.chdir(tempfile.gettempdir());"
        " open('in.txt', 'w', opener=lambda p, f: os.open(p, f, dir_fd=d))",
        "in.txt",
    ),
    "proc_self_fd": (
        "f = os.open(f'{D}/in.txt', os.O_RDONLY); open(f'/proc/self/fd/{f}', 'w').write('x')",
        "in.txt",
    ),
    "dev_fd": ("f = os.open(f'{D}/in.txt', os.O_RDONLY); open(f'/dev/fd/{f}', 'a').write('x')", "in.txt"),
    "proc_self_cwd": ("open('/proc/self/cwd/notes.txt', 'w').write('x')", "notes.txt"),
    "proc_self_root": ("open(f'/proc/self/root{D}/in.txt', 'w').write('x')", "in.txt"),
    "proc_parent_cwd": ("open(f'/proc/{os.getpid()}/task/{os.getpid()}/cwd/notes.txt', 'a')", "notes.txt"),
    "chroot": ("os.chroot(D); open('/in.txt', 'w').write('x')", "chroot"),
    "sqlite_new": ("import sqlite3; sqlite3.connect(f'{D}/a.db').execute('create table t(a)')", "a.db"),
    "sqlite_over": ("import sqlite3; sqlite3.connect(f'{D}/in.txt')", "in.txt"),
    "sqlite_uri": (
        "import sqlite3; sqlite3.connect(f'file:{D}/a.db?mode=rwc', uri=True).execute('create table t(a)')",
        "a.db",
    ),
    "sqlite_attach": (
        "import sqlite3; c = sqlite3.connect(':memory:'); c.execute(f\"attach '{D}/a.db' as a\");"
        " c.execute('create table a.t(a)')",
        "a.db",
    ),
    "sqlite_vacuum_into": (
        "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t(a)');"
        " c.execute(f\"vacuum into '{D}/a.db'\")",
        "a.db",
    ),
    "dbm": ("import dbm; dbm.open(f'{D}/a', 'c')['k'] = 'v'", "a"),
    "shelve": ("import shelve; shelve.open('shelf')['k'] = 'v'", "shelf"),
    "mmap": (
        "import mmap; f = open(f'{D}/in.txt', 'r+b'); mmap.mmap(f.fileno(), 0)[0:1] = b'x'",
        "in.txt",
    ),
    "mmap_of_read": (
        "import mmap; f = open(f'{D}/in.txt', 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY);"
        " m[0:1] = b'x'; m.flush(); os.truncate(f.fileno(), 1)",
        "in.txt",
    ),
    "ctypes_unlink": ("import ctypes; ctypes.CDLL(None).unlink(os.fsencode(f'{D}/in.txt'))", "library"),
    "ctypes_pythonapi": ("import ctypes; ctypes.pythonapi.unlink(os.fsencode(f'{D}/in.txt'))", "unlink"),
    "ctypes_by_name": ("import ctypes; ctypes.CDLL('libc.so.6').chmod(b'notes.txt', 0o777)", "libc.so.6"),
    "ctypes_dlsym": (
        "import _ctypes, ctypes; a = _ctypes.dlsym(ctypes.pythonapi._handle, 'chmod');"
        " ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int)(a)(b'notes.txt', 0o777)",
        "chmod",
    ),
    "ctypes_clear_hooks": ("import ctypes; ctypes.pythonapi._PySys_ClearAuditHooks(0)", "ClearAuditHooks"),
    "system": ("os.system(f'rm -rf {D}')", "rm -rf"),
    "popen": ("os.popen(f'rm -rf {D}').read()", "rm -rf"),
    "subprocess": ("import subprocess; subprocess.run(['rm', '-rf', D])", "rm -rf"),
    "subprocess_shell": ("import subprocess; subprocess.run(f'echo x > {D}/in.txt', shell=True)", "in.txt"),
    "subprocess_spawn": (
        "import subprocess; subprocess.run(['/bin/rm', f'{D}/in.txt'], close_fds=False)",
        "in.txt",
    ),
    "subprocess_python": (
        "import subprocess; "
        "subprocess.run([sys.executable, '-S', '-c', f'open({D!r} + \"/in.txt\", \"w\")'])",
        "in.txt",
    ),
    "posix_spawn": ("os.posix_spawn('/bin/rm', ['rm', f'{D}/in.txt'], os.environ)", "in.txt"),
    "spawnv": ("os.spawnv(os.P_WAIT, '/bin/rm', ['rm', f'{D}/in.txt']); sys.exit(7)", "in.txt"),
    "execv": ("os.execv('/bin/rm', ['rm', f'{D}/in.txt'])", "in.txt"),
    "fork_exec": (
        "import _posixsubprocess, inspect; a = [-1] * 6 + list(os.pipe()) + [True, False, 0];"
        " r = [[b'/bin/rm', os.fsencode(f'{D}/in.txt')], [b'/bin/rm'], True, (), None, None, *a];"
        " _posixsubprocess.fork_exec(*r)",
        "in.txt",
    ),
    "fork_child": (
        "p = os.fork()\nif p == 0:\n    try:\n        os.remove(f'{D}/in.txt')\n    finally:\n"
        "        os._exit(1)\n"
        "sys.exit(os.waitpid(p, 0)[1])",
        "in.txt",
    ),
    "pty": ("import pty; pty.spawn(['rm', f'{D}/in.txt'])", "in.txt"),
    "multiprocessing_fork": (
        "import multiprocessing as m\n"
        "p = m.get_context('fork').Process(target=os.remove, args=(f'{D}/in.txt',))\n"
        "p.start(); p.join(); sys.exit(p.exitcode)",
        "in.txt",
    ),
    "multiprocessing_spawn": (
        "import multiprocessing as m\nif __name__ == '__main__':\n"
        "    p = m.get_context('spawn').Process(target=os.remove, args=(f'{D}/in.txt',))\n"
        "    p.start(); p.join(); sys.exit(p.exitcode)",
        "in.txt",
    ),
    "multiprocessing_other": (
        "import multiprocessing as m\nif __name__ == '__main__':\n    m.set_executable('/bin/rm')\n"
        "    m.get_context('spawn').Process(target=print).start()",
        "/bin/rm",
    ),
    "process_pool": (
        "from concurrent.futures import ProcessPoolExecutor\nif __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(1) as p: p.submit(os.truncate, f'{D}/in.txt', 0).result()",
        "in.txt",
    ),
    "environment": ("del os.environ['LINEAGE_REPLAY']", "LINEAGE_REPLAY"),
    "environment_cleared": ("os.environ.clear()", "LINEAGE_REPLAY"),
    "environment_changed": ("os.environ['LINEAGE_REPLAY'] = '/dev/null'", "LINEAGE_REPLAY"),
    "atexit": ("import atexit; atexit.register(os.remove, f'{D}/in.txt')", "in.txt"),
    "finaliser": (
        "class C:\n    def __del__(self, remove=os.remove, path=f'{D}/in.txt'):\n        remove(path)\n"
        "c = C()",
        "in.txt",
    ),
    "finaliser_in_cycle": (
        "class C:\n    def __del__(self, remove=os.remove, path=f'{D}/in.txt'):\n        remove(path)\n"
        "c = C(); c.c = c\nimport gc; gc.disable()",
        "",
    ),
    "weakref": ("import weakref; w = weakref.finalize(sys, os.remove, f'{D}/in.txt')", "in.txt"),
    "thread": (
        "import threading; t = threading.Thread(target=os.remove, args=(f'{D}/in.txt',)); t.start(); "
        "t.join();"
        " sys.exit(7)",
        "in.txt",
    ),
    "signal": (
        "import signal; signal.signal(signal.SIGUSR1, lambda *_: os.remove(f'{D}/in.txt'));"
        " os.kill(os.getpid(), signal.SIGUSR1); [None for _ in range(1000)]",
        "in.txt",
    ),
    "generator_end": (
        "def g():\n    try:\n        yield\n    finally:\n        os.remove(f'{D}/in.txt')\nx = g(); "
        "next(x); x.close()",
        "in.txt",
    ),
    "pickle": (
        "import pickle\nclass R:\n    def __reduce__(self): return os.system, (f'rm {D}/in.txt',)\n"
        "pickle.loads(pickle.dumps(R()))",
        "in.txt",
    ),
    "catching": (
        "try:\n    os.remove(f'{D}/in.txt')\nexcept PermissionError:\n    print('went on'); sys.exit(7)",
        "in.txt",
    ),
    "catching_all": (
        "for f in os.listdir(D):\n    try:\n        os.remove(f'{D}/{f}')\n"
        "    except BaseException: pass\nsys.exit(7)",
        "in.txt",
    ),
    "monkeypatched_paths": (
        "import posixpath; "
        "os.path.realpath = posixpath.realpath = os.path.abspath = lambda p, **k: '/dev/null';"
        " os.getcwd = lambda: '/dev'; os.readlink = lambda p, **k: '/dev/null'; open('notes.txt', 'w')",
        "notes.txt",
    ),
    "hook_of_own": ("sys.addaudithook(lambda e, a: None); os.remove(f'{D}/in.txt')", "in.txt"),
    "trace": (
        "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None); os.remove(f'{D}/in.txt')",
        "in.txt",
    ),
    "interpreter": (
        "i = __import__('_xxsubinterpreters' if sys.version_info < (3, 13) else '_interpreters');"
        " i.run_string(i.create(), f'import os; os.remove({D!r} + \"/in.txt\")')",
        "interpreter",
    ),
    "exec_text": (
        "exec(compile(f'import os; os.remove({D!r} + \"/in.txt\")', '/x/pyspark/y.py', 'exec'))",
        "in.txt",
    ),
    "false_gateway": (
        "import subprocess, types\n"
        'exec(compile(\'import subprocess\\ndef launch_gateway(d): subprocess.run(["rm", "-rf", d])\','
        " '/x/pyspark/java_gateway.py', 'exec'))\n"
        "m = types.ModuleType('pyspark.java_gateway'); m.launch_gateway = print\n"
        "sys.modules['pyspark.java_gateway'] = m; launch_gateway(D)",
        "rm -rf",
    ),
    "logging_file": (
        "import logging; logging.basicConfig(filename='notes.txt'); logging.error('x')",
        "notes.txt",
    ),
    "csv_writer": ("import csv; csv.writer(open(f'{D}/out/part-00000', 'w')).writerow([1])", "part-00000"),
    "zipfile": ("import zipfile; zipfile.ZipFile('a.zip', 'w').write(__file__)", "a.zip"),
    "tarfile": ("import tarfile; tarfile.open('a.tgz', 'w:gz').add(__file__)", "a.tgz"),
    "gzip": ("import gzip; gzip.open(f'{D}/in.txt', 'wb').write(b'x')", "in.txt"),
    "fileinput": (
        "import fileinput\nfor line in fileinput.input(f'{D}/in.txt', inplace=True): print('x')",
        "in.txt",
    ),
    "compileall": ("import py_compile; py_compile.compile(__file__)", "__pycache__"),
    "tempfile_here": ("import tempfile; tempfile.NamedTemporaryFile(dir='.')", "work"),
    "tempfile_elsewhere": ("import tempfile; tempfile.tempdir = D; tempfile.mkdtemp()", "data"),
    "literal_tmp": ("open(f'/tmp/lineage-hostile-{os.getpid()}', 'w').write('x')", "lineage-hostile"),
    "sendfile": (
        "i = os.open(__file__, os.O_RDONLY); os.sendfile(os.open(f'{D}/in.txt', os.O_RDWR), i, 0, 3)",
        "in.txt",
    ),
    "ioctl_flags": (
        "import fcntl, struct; f = os.open(f'{D}/in.txt', os.O_RDONLY);"
        " fcntl.ioctl(f, 0x40086602, struct.pack('l', 0x40))",
        "in.txt",
    ),
    "ssl_keys": ("import ssl; ssl.create_default_context().keylog_filename = 'keys.txt'", "keys.txt"),
    "profile": ("import cProfile; cProfile.run('1', 'stats')", "stats"),
    "dump_traces": ("import tracemalloc; tracemalloc.start(); tracemalloc.take_snapshot().dump('t')", "t"),
    "numpy_tofile": ("import numpy; numpy.arange(3).tofile(f'{D}/in.txt')", "in.txt"),
    "pandas_csv": ("import pandas; pandas.DataFrame({'a': [1]}).to_csv('frame.csv')", "frame.csv"),
}

#: Libraries in C that write without an event: the kernel's fence holds, and no refusal names the path.
UNSEEN: dict[str, str] = {
    "arrow_file": "import pyarrow; pyarrow.OSFile(f'{D}/in.txt', 'w').write(b'x')",
    "arrow_delete": "from pyarrow import fs; fs.LocalFileSystem().delete_dir(D)",
    "parquet": (
        "import pyarrow, pyarrow.parquet as p; p.write_table(pyarrow.table({'a': [1]}), f'{D}/new.parquet')"
    ),
    "duckdb": "import duckdb; duckdb.connect(f'{D}/a.db').execute('create table t(a int)')",
    "duckdb_copy": "import duckdb; duckdb.sql(f\"copy (select 1) to '{D}/out.csv'\")",
    "delta": (
        "import pyarrow, deltalake; deltalake.write_deltalake(f'{D}/table', pyarrow.table({'a': [1]}))"
    ),
}

#: Scripts that change nothing of anybody's, and have to end well.
FRIENDLY: dict[str, str] = {
    "temporary": (
        "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n"
        "    p = pathlib.Path(d, 'a', 'b'); p.mkdir(parents=True); (p / 'c').write_text('x')\n"
        "    os.rename(p / 'c', p / 'd'); os.link(p / 'd', p / 'e'); os.symlink('d', p / 'f')\n"
        "    os.chmod(p / 'd', 0o600); os.utime(p / 'd'); os.truncate(p / 'd', 0); "
        "shutil.copy(p / 'd', p / 'g')\n"
        "    open(p / 'f', 'a').write('y'); shutil.move(p / 'g', pathlib.Path(d, 'h')); os.mkfifo(p / 'i')\n"
        "    os.open('j', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(p, os.O_RDONLY))\n"
        "tempfile.NamedTemporaryFile().write(b'x'); tempfile.TemporaryFile().write(b'x')\n"
    ),
    "reading": (
        "assert open(f'{D}/in.txt').read().splitlines() == ['one', 'two', 'three']\n"
        "assert pathlib.Path(D, 'link').read_text(); assert os.listdir(D); assert list(os.walk(D))\n"
    ),
    "standard_streams": (
        "import logging\nlogging.basicConfig(stream=sys.stderr); logging.warning('seen')\n"
        "print('x', file=open('/dev/stderr', 'w')); print('x', file=open('/dev/stdout', 'a'))\n"
        "open(os.devnull, 'w').write('x'); os.fdopen(os.dup(1), 'w').write('x')\n"
    ),
    "arguments": (
        "import argparse\nparser = argparse.ArgumentParser(); parser.add_argument('data')\n"
        "def main():\n    print(parser.parse_args().data)\nif __name__ == '__main__':\n    main()\n"
    ),
    "folders_that_are_there": (
        "os.makedirs(D, exist_ok=True); pathlib.Path('sub').mkdir(exist_ok=True)\n"
        "for call in (os.remove, os.unlink, os.rmdir):\n"
        "    try:\n        call('nothing')\n    except FileNotFoundError:\n        pass\n"
        "shutil.rmtree('nothing', ignore_errors=True)\n"
    ),
    "processes_of_python": (
        "import multiprocessing as m\n"
        "if __name__ == '__main__':\n"
        "    for way in ('fork', 'spawn', 'forkserver'):\n"
        "        with m.get_context(way).Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]\n"
        "    assert m.get_context('spawn').Manager().list([1])[0] == 1\n"
    ),
    "looking": "import platform, uuid; platform.processor(); platform.platform(); uuid.uuid1(); "
    "uuid.uuid4()\n",
    "sqlite_in_memory": (
        "import sqlite3, tempfile\nc = sqlite3.connect(':memory:'); c.execute('create table t(a)'); "
        "c.execute('vacuum')\n"
        "c = sqlite3.connect(os.path.join(tempfile.mkdtemp(), 'a.db')); c.execute('create table t(a)'); "
        "c.commit()\n"
    ),
    "packages": "import numpy, pandas; pandas.DataFrame({'a': numpy.arange(3)}).sum(); import ctypes\n",
    "environment": "os.environ['A'] = 'b'; del os.environ['A']; os.environ['PATH'] += ':/x'\n",
    "names": "assert os.path.basename(os.getcwd()) == 'work' and __file__.endswith('job.py')\n",
}
