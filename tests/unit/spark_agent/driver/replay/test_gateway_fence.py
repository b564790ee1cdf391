from __future__ import annotations

import pytest

from spark_agent.driver.replay.gateway_fence import refused_call

REFUSED = {
    "i\njava.io.File\ns/data/in.txt\ne\n": "/data/in.txt",
    "i\njava.lang.ProcessBuilder\ne\n": "ProcessBuilder",
    "i\norg.apache.hadoop.fs.RawLocalFileSystem\ne\n": "RawLocalFileSystem",
    "i\norg.apache.hadoop.fs.LocalFileSystem\ne\n": "LocalFileSystem",
    "i\ncom.acme.Loader\ns/data\ne\n": "com.acme.Loader(/data)",
    "i\norg.apache.spark.streaming.api.java.JavaStreamingContext\nro1\ne\n": "JavaStreamingContext",
    "c\nz:java.lang.Runtime\ngetRuntime\ne\n": "getRuntime",
    "c\nz:java.lang.System\nexit\ni1\ne\n": "System.exit",
    "c\nz:java.nio.file.Files\ndelete\nro3\ne\n": "Files.delete",
    "c\nz:java.nio.file.Paths\nget\ns/data/x\ne\n": "/data/x",
    "c\nz:java.lang.Class\nforName\nsjava.io.File\ne\n": "java.io.File",
    "c\nz:scala.sys.process.Process\napply\nsrm -rf /\ne\n": "rm -rf /",
    "c\nz:org.apache.spark.util.Utils\ndeleteRecursively\nro1\ne\n": "deleteRecursively",
    "c\nz:java.sql.DriverManager\ngetConnection\nsjdbc:x\ne\n": "jdbc:x",
    "c\no12\nforName\nsjava.io.File\ne\n": "java.io.File",
    "c\no12\nloadClass\nsjava.io.File\ne\n": "java.io.File",
    "c\no12\nset\nsfs.file.impl\nsorg.apache.hadoop.fs.LocalFileSystem\ne\n": "fs.file.impl",
    "c\no12\nset\nsfs.file.impl.disable.cache\nstrue\ne\n": "fs.file.impl",
    "c\no12\nset\nsfs.AbstractFileSystem.hdfs.impl\nsx\ne\n": "AbstractFileSystem",
}
ALLOWED = (
    "i\norg.apache.hadoop.fs.Path\ns/data/in.txt\ne\n",
    "i\njava.net.URI\nsfile:///\ne\n",
    "i\njava.util.ArrayList\ne\n",
    "i\norg.apache.hadoop.conf.Configuration\ne\n",
    "c\nz:org.apache.hadoop.fs.FileSystem\nget\nro1\ne\n",
    "c\nz:java.lang.System\ncurrentTimeMillis\ne\n",
    "c\nz:org.apache.log4j.Logger\ngetLogger\nsorg\ne\n",
    "c\nz:org.apache.spark.sql.functions\ncol\nsa\ne\n",
    "c\no12\nload\ns/data/in\ne\n",
    "c\no12\ndelete\nro3\nbTrue\ne\n",
    "c\no12\nset\nsfs.s3a.access.key\nsx\ne\n",
    "c\no12\ngetClass\ne\n",
    "r\nu\nrj\njava.io.File\ne\n",
    "p\n",
)


@pytest.mark.parametrize("command", REFUSED)
def test_what_could_harm_is_refused_and_named(command: str) -> None:
    what, of = refused_call(command)
    assert what
    assert REFUSED[command] in of


@pytest.mark.parametrize("command", ALLOWED)
def test_what_jobs_ask_of_the_jvm_is_allowed(command: str) -> None:
    assert refused_call(command) == ("", "")
