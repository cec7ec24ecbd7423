"""Partition paths: text, values, directories (PC-P01 to P10, PC-V07)."""

from __future__ import annotations

from oracle.questions.question import REFUSED, Question

GOLDEN_TEXTS = (
    "a/b:c=d%e f",
    'x[y]{z}^"#*?',
    "~!@$&()+,;<>|`._-",
    "back\\slash",
    "it's",
    "line\nbreak\ttab\rreturn",
    "\x00\x1f\x7f\x80\xff",
    "Müller, Łódź, naïve",
    "日本語",
    "Ωμέγα",
    "سلام",
    "e\u0301 and é",
    "emoji 😀",
    "%41",
    "..",
    ".",
    ".x",
    "_x",
    " ",
    " blank at both ends ",
    "__DEFAULT_PARTITION",
    "=",
    "a=b=c",
)

# ── Escaping: every character below 256 in a value and in a key, PC-P03 ──
_CHARACTERS = [chr(number) for number in range(256)]
TEXTS = (
    *(
        Question({"do": "escape", "text": text})
        for text in dict.fromkeys(
            [*_CHARACTERS, *(f"a{one}b" for one in _CHARACTERS), *GOLDEN_TEXTS]
        )
    ),
    Question({"do": "escape", "text": ""}),
    # ── Unescaping, PC-P04 ──
    *(
        Question({"do": "unescape", "text": f"{before}%{number:02X}{after}"})
        for number in range(256)
        for before, after in (("", ""), ("a", "b"))
    ),
    *(
        Question({"do": "unescape", "text": text})
        for text in (
            "",
            "plain",
            "%",
            "%%",
            "a%",
            "%4",
            "a%4",
            "%zz",
            "%4z",
            "%z4",
            "%%41",
            "%41%",
            "%4%41",
            "%4a%4A",
            "%2f%2F",
            "%2541",
            "%25%34%31",
            "% 41",
            "%4 1",
            "%0x41",
            "a+b",
            "日本語",
            "%e9",
            "%E9t%E9",
            "%FF%FE",
            "%3D%3d",
            "\u0664\u0661",
        )
    ),
    # Flink reads digits as Java's Integer.parseInt does: a sign, and digits of other scripts.
    *(
        Question({"do": "unescape", "text": text}, "PC-P04", text)
        for text in ("%+1x", "%-0x", "%\u0664\u0661", "%\uff14\uff11")
    ),
    # Flink reads each code as a character; other writers escape the bytes of UTF-8.
    *(
        Question({"do": "unescape", "text": text}, "PC-P04", ours)
        for text, ours in (
            ("%C3%BC", "ü"),
            ("M%C3%BCller", "Müller"),
            ("%E6%97%A5%E6%9C%AC", "日本"),
            ("%F0%9F%98%80", "😀"),
            ("%c2%a0", "\u00a0"),
        )
    ),
)

# ── Values → path, PC-P01, P02, P07 ──
PATHS = (
    *(Question({"values": [["k", text]]}) for text in GOLDEN_TEXTS),
    *(Question({"values": [[text, "v"]]}) for text in ("a b", "a/b", "a=b", "ключ", "x:y", "%")),
    Question({"values": [["dt", "2020-12-01"], ["hr", "10"]]}),
    Question({"values": [["hr", "10"], ["dt", "2020-12-01"]]}),
    Question({"values": [["a", "1"], ["b", "2"], ["c", "3"], ["d", "4"]]}),
    Question({"values": [["ts", "2020-12-01T11:00:00"]]}),
    Question({"values": []}),
    Question({"values": [["k", ""]]}),
    Question({"values": [["", "v"]]}),
    Question({"values": [["dt", "1"], ["k", ""]]}),
    Question({"values": [["k", None]]}, "PC-P08", "k=__DEFAULT_PARTITION__"),
    Question({"values": [["dt", "1"], ["k", None]]}, "PC-P08", "dt=1/k=__DEFAULT_PARTITION__"),
)

# ── Path → values, PC-P05 ──
_DAY_AND_HOUR = ["dt", "hr"]
SPECS = (
    *(
        Question({"path": path, "keys": keys})
        for path, keys in (
            ("dt=2020-12-01", ["dt"]),
            ("dt=2020-12-01/hr=10", _DAY_AND_HOUR),
            ("dt=a%2Fb%3Ac%3Dd%25e f", ["dt"]),
            ("a b=1", ["a b"]),
            ("a%3Db=1", ["a=b"]),
            ("dt=.x", ["dt"]),
            ("dt=_x", ["dt"]),
            ("dt=..", ["dt"]),
            ("dt=日本", ["dt"]),
            ("dt=__HIVE_DEFAULT_PARTITION__", ["dt"]),
            ("ts=2020-12-01T11%3A00%3A00", ["ts"]),
        )
    ),
    *(
        Question({"path": path, "keys": keys}, "PC-P05", ours)
        for path, keys, ours in (
            ("dt=a=b", ["dt"], [["dt", "a=b"]]),
            ("dt=a=b=c", ["dt"], [["dt", "a=b=c"]]),
            ("dt=1/other/hr=2", _DAY_AND_HOUR, REFUSED),
            ("hr=2/dt=1", _DAY_AND_HOUR, REFUSED),
            ("dt=1", _DAY_AND_HOUR, REFUSED),
            ("dt=1/hr=2/min=3", _DAY_AND_HOUR, REFUSED),
            ("dt=1/dt=2", ["dt"], REFUSED),
            ("DT=1", ["dt"], REFUSED),
            ("other", ["dt"], REFUSED),
            ("dt=", ["dt"], REFUSED),
            ("=1", ["dt"], REFUSED),
        )
    ),
    Question({"path": "dt=__DEFAULT_PARTITION__", "keys": ["dt"]}, "PC-P08", [["dt", None]]),
)

# ── Directories of a table, PC-P09, R03 ──
LISTINGS = (
    *(
        Question({"files": files, "keys": keys})
        for files, keys in (
            (["dt=1/f", "dt=2/f"], ["dt"]),
            (["dt=1/hr=1/f", "dt=1/hr=2/f", "dt=2/hr=1/f"], _DAY_AND_HOUR),
            (["dt=1/f", "_metadata/f", ".hidden/f"], ["dt"]),
            (["dt=1/hr=1/f", "dt=1/.x/f", "dt=1/_x/f"], _DAY_AND_HOUR),
            (["dt=.x/f", "dt=_x/f", "dt=../f"], ["dt"]),
            # A table of Tidegate: its owner's file, a marker.
            ([".tidegate.owner", "dt=1/hr=1/part-1", "dt=1/hr=1/_SUCCESS"], _DAY_AND_HOUR),
        )
    ),
    *(
        Question({"files": files, "keys": keys}, rule, ours)
        for files, keys, rule, ours in (
            (
                ["dt=1/hr=1/f", ".staging_1/dt=1/f"],
                _DAY_AND_HOUR,
                "PC-P09",
                [[["dt", "1"], ["hr", "1"]]],
            ),
            (
                ["dt=1/hr=1/f", "_temporary/0/f"],
                _DAY_AND_HOUR,
                "PC-P09",
                [[["dt", "1"], ["hr", "1"]]],
            ),
            (["dt=1/f", "other/f"], ["dt"], "PC-R03", REFUSED),
            (["dt=1/f", "DT=2/f"], ["dt"], "PC-R03", REFUSED),
            (
                ["dt=1/f", "dt=__DEFAULT_PARTITION__/f"],
                ["dt"],
                "PC-P08",
                [[["dt", "1"]], [["dt", None]]],
            ),
        )
    ),
)

# ── The value of a row → text, PC-P06, P08 ──
VALUES_WRITTEN = (
    *(
        Question({"type": kind, "value": value})
        for kind, value in (
            ("string", "plain"),
            ("string", " blank "),
            ("string", ""),
            ("string", None),
            ("int", 7),
            ("int", -7),
            ("int", 0),
            ("int", None),
            ("long", 9_223_372_036_854_775_807),
            ("long", -9_223_372_036_854_775_808),
            ("boolean", True),
            ("boolean", False),
        )
    ),
    Question({"type": "date", "value": "2020-12-01"}, "PC-P06", "2020-12-01"),
    Question({"type": "date", "value": "1969-12-31"}, "PC-P06", "1969-12-31"),
    Question({"type": "date", "value": None}),
)

# ── Text → value of the declared type, PC-P06 ──
VALUES_READ = (
    *(
        Question({"type": kind, "text": text})
        for kind, text in (
            ("string", "plain"),
            ("string", " blank "),
            ("string", "00"),
            ("int", "7"),
            ("int", "-7"),
            ("int", "0"),
            ("int", "2147483647"),
            ("int", "2147483648"),
            ("int", "7.0"),
            ("int", "seven"),
            ("int", " 7"),
            ("long", "9223372036854775807"),
            ("long", "9223372036854775808"),
            ("boolean", "true"),
            ("boolean", "false"),
            ("date", "2020-12-01"),
            ("date", "1969-12-31"),
            ("date", "yesterday"),
            ("date", "2020-13-01"),
            ("date", "2020-2-3"),
            ("date", "18597"),
            ("timestamp", "2020-12-01T11:00:00"),
            ("timestamp", "2020-12-01T11:00:00.123"),
            ("timestamp", "2020-12-01T11:00:00.123456"),
            ("timestamp", "2020-12-01"),
            ("timestamp", "noon"),
        )
    ),
    *(
        Question({"type": kind, "text": text}, "PC-P06", ours)
        for kind, text, ours in (
            ("int", "007", REFUSED),
            ("int", "+7", REFUSED),
            ("int", "-0", REFUSED),
            ("int", "\u0667", REFUSED),
            ("boolean", "TRUE", REFUSED),
            ("boolean", "yes", REFUSED),
            ("boolean", "1", REFUSED),
            ("timestamp", "2020-12-01 11:00:00", "2020-12-01T11:00:00"),
            ("timestamp", "2020-12-01 11:00:00.123", "2020-12-01T11:00:00.123000"),
            ("timestamp", "2020-12-01T11:00", REFUSED),
            ("decimal(10, 2)", "7.50", "7.50"),
            ("decimal(10, 2)", "-7.50", "-7.50"),
        )
    ),
)
