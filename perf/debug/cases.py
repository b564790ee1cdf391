"""What is measured for the comparison with Newt and Titian: names of cases of `perf.capture`."""

from __future__ import annotations

from perf.capture.cases import PIGMIX

#: What the names of cases begin with, before that of a query.
RDD, SQL = "pigmix-", "pigmix-sql-"
#: Stores in which rows are traced: those whose rows come from few and from many.
TRACED = (*(f"{RDD}{query}" for query in PIGMIX), "newt-wordcount", "wordcount")
