"""Random charts: templates, values, sub-charts and `--set` lines, made from a seed.

Expressions are made by type, so that most of them render; now and then an argument is of the wrong type, a template does
not parse, or a value is missing, so that errors are compared, too. Nothing that is made depends on chance or the clock.
"""

import json
import random

# Values of which each type has some that are at an edge. They are written into values.yaml as they are.
SCALARS = {
    "str": ['""', "a", "Hello World", '"two  words "', "'it''s'", '"tab\\there"', '"line\\nbreak"', "ünïcödé", '"\\u00e9"', "a-b_c.d", '"<a href=\\"x\\">&"',
            '"1"', '"true"', '"null"', "fooBarBaz", "1.2.3", "v1.10.0-rc.1+build.5", "/a/b/../c.txt", "https://user:pw@example.com:8080/p?q=1#f", '"a,b,,c"',
            '"%d %s"', '"{{ .Release.Name }}"', '"日本語テキスト"', '"  lead"', '"a\\\\b"', "2001-02-03", '"=x"', "aGVsbG8=", '"🚢"', "ab" * 20],
    "int": ["0", "1", "-1", "42", "1000000", "10000000", "123456789", "9007199254740993", "0x1F", "0o17", "017", "1_000", "-0", "2147483648", "65535"],
    "float": ["0.5", "-1.5", "1e3", "1.0", "1e21", "1e-7", "3.14159", "123456.789", ".5", "1.7976931348623157e308", "0.1"],
    "bool": ["true", "false", "yes", "off"],
    "nil": ["null", "~", ""],
}
LISTS = ["[]", "[1, 2, 3]", "[a, b, c]", '["x", 1, true, null, 2.5]', "[[1, 2], [3]]", "[{k: v}, {k: w}]", '["b", "a", "b", ""]', "[0]", "[1e6, 1000000, 0.1]"]
DICTS = ["{}", "{a: 1}", "{a: {b: {c: deep}}}", '{x: null, y1: "", z: 0}', "{n: [1, 2], m: {k: v}}", '{"with space": 1, "dot.ted": 2}', "{b: 2, a: 1, c: 3}",
         '{enabled: true, name: web, port: 8080}', '{"1": one, "true": yes}']

# Functions by result: (name, types of the arguments). A star stands for one to three of the type.
FUNCTIONS = {
    "str": [("upper", "str"), ("lower", "str"), ("title", "str"), ("untitle", "str"), ("swapcase", "str"), ("nospace", "str"), ("initials", "str"),
            ("snakecase", "str"), ("kebabcase", "str"), ("camelcase", "str"), ("trim", "str"), ("trunc", "smallint str"), ("abbrev", "posint str"),
            ("abbrevboth", "posint posint str"), ("substr", "smallint smallint str"), ("repeat", "posint str"), ("trimAll", "char str"), ("trimSuffix", "char str"),
            ("trimPrefix", "char str"), ("wrap", "posint str"), ("wrapWith", "posint char str"), ("quote", "any*"), ("squote", "any*"), ("cat", "any*"),
            ("indent", "posint str"), ("nindent", "posint str"), ("replace", "char char str"), ("plural", "str str int"), ("toString", "any"),
            ("join", "char list"), ("b64enc", "str"), ("b64dec", "str"), ("b32enc", "str"), ("b32dec", "str"), ("sha1sum", "str"), ("sha256sum", "str"),
            ("sha512sum", "str"), ("adler32sum", "str"), ("toJson", "any"), ("toPrettyJson", "any"), ("toRawJson", "any"), ("mustToJson", "any"), ("toYaml", "any"),
            ("toYamlPretty", "any"), ("toToml", "dict"), ("typeOf", "any"), ("kindOf", "any"), ("base", "str"), ("dir", "str"), ("clean", "str"), ("ext", "str"),
            ("osBase", "str"), ("regexFind", "regex str"), ("regexReplaceAll", "regex str repl"), ("regexReplaceAllLiteral", "regex str repl"),
            ("regexQuoteMeta", "str"), ("mustRegexFind", "regex str"), ("print", "any*"), ("println", "any*"), ("printf", "format any any"), ("html", "any*"),
            ("js", "any*"), ("urlquery", "any*"), ("duration", "int"), ("durationRound", "durationish"), ("htmlDate", "int"), ("seq", "seqint*"),
            ("urlJoin", "url"), ("include", "template any"), ("tpl", "tplstr root"), ("date", "layout posint"), ("ternary", "str str bool"), ("toDecimal", "str")],
    "int": [("add", "num*"), ("add1", "num"), ("sub", "num num"), ("mul", "num num*"), ("div", "num nonzero"), ("mod", "num nonzero"), ("max", "num num*"), ("min", "num num*"),
            ("biggest", "num num*"), ("int", "any"), ("int64", "any"), ("atoi", "str"), ("len", "sized"), ("toDecimal", "any")],
    "float": [("addf", "num*"), ("add1f", "num"), ("subf", "num num*"), ("mulf", "num num*"), ("divf", "num nonzero"), ("maxf", "num num*"), ("minf", "num num*"),
              ("ceil", "num"), ("floor", "num"), ("round", "num posint"), ("round", "num posint half"), ("float64", "any")],
    "bool": [("eq", "any any"), ("ne", "any any"), ("lt", "num num"), ("le", "str str"), ("gt", "num num"), ("ge", "num num"), ("not", "any"), ("empty", "any"),
             ("hasKey", "dict key"), ("has", "any list"), ("contains", "char str"), ("hasPrefix", "char str"), ("hasSuffix", "char str"), ("kindIs", "kind any"),
             ("typeIs", "type any"), ("typeIsLike", "type any"), ("deepEqual", "any any"), ("regexMatch", "regex str"), ("semverCompare", "constraint version"),
             ("isAbs", "str"), ("all", "any*"), ("any", "any*")],
    "list": [("list", "any*"), ("tuple", "any*"), ("append", "list any"), ("prepend", "list any"), ("concat", "list list"), ("rest", "list"), ("initial", "list"),
             ("reverse", "list"), ("compact", "list"), ("uniq", "list"), ("without", "list any*"), ("slice", "list posint"), ("slice", "list posint posint"),
             ("chunk", "one list"), ("sortAlpha", "list"), ("until", "posint"), ("untilStep", "smallint smallint step"), ("splitList", "char str"),
             ("toStrings", "list"), ("regexFindAll", "regex str smallint"), ("regexSplit", "regex str smallint"), ("fromYamlArray", "yamllist"), ("fromJsonArray", "jsonlist"),
             ("sortAlpha", "keys"), ("pluck", "key dict dict"), ("mustSlice", "list posint"), ("mustAppend", "list any"), ("mustUniq", "list")],
    "dict": [("dict", "key any"), ("dict", "key any key any"), ("set", "dict key any"), ("unset", "dict key"), ("pick", "dict key*"), ("omit", "dict key*"),
             ("merge", "dict dict"), ("mergeOverwrite", "dict dict"), ("deepCopy", "dict"), ("fromYaml", "yamldict"), ("fromJson", "jsondict"), ("split", "char str"),
             ("splitn", "char posint str"), ("urlParse", "url"), ("mustMerge", "dict dict"), ("get", "dict key")],
    "any": [("default", "any any"), ("coalesce", "any*"), ("ternary", "any any bool"), ("first", "list"), ("last", "list"), ("get", "dict key"), ("index", "list posint"),
            ("index", "dict key"), ("dig", "key any dict"), ("dig", "key key any dict"), ("and", "any any"), ("or", "any any"), ("required", "message any"), ("fromYaml", "yamldict"),
            ("semver", "version"), ("mustFromJson", "jsonlist"), ("toDate", "layout date"), ("mustFirst", "list"), ("slice", "str posint"), ("lookup", "str str str str")],
}
TOKENS = {
    "char": ['","', '""', '"a"', '" "', '"-"', '"b"', "`\\`", '"é"', "`é`"],
    "posint": ["0", "1", "2", "3", "5", "10"],
    "smallint": ["-3", "-1", "0", "1", "2", "4", "100"],
    "seqint": ["-2", "0", "1", "3", "5"],
    "step": ["-2", "-1", "1", "2"],
    "one": ["1", "2", "3"],
    "nonzero": ["1", "2", "-3", "7", ".Values.int1", "0"],
    "half": ["0.5", "0.3"],
    "key": ['"a"', '"b"', '"k"', '"enabled"', '"with space"', '"nope"', '"n"', ".Values.str1"],
    "regex": ['"[a-z]+"', '"^a.c$"', '"(\\\\w)(\\\\w)"', '"[[:upper:]]"', '"\\\\d{2,}"', '"b*"', '"("', '"\\\\bH"', '"(?i)hello"', '""', '"(?P<x>o)"', '".."'],
    "repl": ['"X"', '"${1}-$2"', '"$1W"', '""', '"$x"', '"${x}!"'],
    "format": ['"%v|%v"', '"%s %d"', '"%q %5d"', '"%05d|%-5s"', '"%t %x"', '"%.2f %e"', '"%+v %T"', '"%c %U"', '"%%%s%s"', '"%v"', '"%[2]v %[1]v"', '"%*d %v"', '"%#v %#v"',
               '"%8.3f|%g"', '"%o %b"', '"%X|%x"', '"% d|%+d"', '"%6.2f%%|%-8q|"', '"%!"', '"%s"'],
    "kind": ['"string"', '"map"', '"slice"', '"int"', '"float64"', '"invalid"', '"bool"'],
    "type": ['"string"', '"map[string]interface {}"', '"float64"', '"[]interface {}"', '"int64"', '"int"'],
    "constraint": ['">=1.2.0"', '"^1.2"', '"~1.10"', '">1.0.0-0 <2"', '"1.x || 3"', '"bad"', '"*"', '"1.2 - 1.4"', '"!=1.2.3"', '">=1.2, <2.0"', '"=1.2.3"', '"~0.1"'],
    "version": ['"1.2.3"', '"v1.10.0-rc.1+build.5"', '"1.2"', '"2"', '"x"', '"0.1.9"', '"1.4.0"', ".Values.str1", '"1.2.3-alpha"'],
    "message": ['"is needed"'],
    "url": ['"https://user:pw@example.com:8080/p/a?q=1#f"', '"http://h"', '"/only/path"', '"%zz"', '"mailto:a@b.c"', '"http://[::1]:80/x y"'],
    "yamldict": ['"a: 1"', '"a: {b: [1, 2.0, x]}\\nc: yes\\n"', '"- 1"', '"a: b: c"', '""', "(toYaml .Values.dict1)", '"a: 0x10\\nb: 1e3\\nc: 2001-01-01"', '"1: x\\ntrue: y"'],
    "yamllist": ['"[1, a]"', '"- 1\\n- b: c\\n"', '"a: 1"', "(toYaml .Values.list1)", '"- 1.0\\n- 010"'],
    "jsondict": ['`{"a": 1, "b": [1.5, null]}`', '"[]"', '"{"', '`{"a": 12345678901234567890}`', '`{"a":1} x`'],
    "jsonlist": ['`[1, "a", {"b": 1e3}]`', '"{}"', '"["', '"1"', '"null"'],
    "layout": ['"2006-01-02"', '"15:04:05 MST"', '"Jan _2 06 3:04PM"', '"Mon 02 January 2006"', '"2006-01-02T15:04:05Z07:00"', '"x"', '".000 Z0700"'],
    "date": ['"2021-03-04"', '"12:13:14 UTC"', '"2021-03-04T05:06:07Z"', '"bad"', '"2021-02-30"'],
    "durationish": ['"3600"', '"90s"', '"2h45m"', "7200", '"x"', '"400h"'],
    "template": ['"case.helper"', '"case.echo"', '"case.nope"', '"case.list"'],
    "tplstr": ['"{{ .Release.Name }}-x"', "`{{ range $i, $e := .Values.list1 }}{{ $i }}={{ $e }};{{ end }}`", '"{{ .Values.nope }}"', '"{{"', '"plain"', "`{{ include \"case.echo\" .Values.str1 }}`",
               "`{{ define \"x\" }}in{{ end }}{{ template \"x\" }}`", "`{{ tpl .Values.str2 . }}`", ".Values.str1", "`{{- .Values.int1 -}} `"],
    "root": [".", "$"],
    "keys": ["(keys .Values.dict1)", "(keys .Values.dict2 .Values.dict1)", "(keys (dict))"],
}
TYPES = ["str", "int", "float", "bool", "list", "dict", "any"]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.variables = []
        self.inside = 0

    def pick(self, items):
        return self.rng.choice(items)

    def chance(self, probability):
        return self.rng.random() < probability

    # Expressions.

    def literal(self, kind):
        if kind == "str":
            return self.pick(['""', '"a"', '"Hello World"', "`raw \\n`", '"a,b"', '"\\t\\"x\\u00e9"', '"1"', '"1e3"', '"true"', '"日本"', '"foo_bar-baz qux"'])
        if kind == "int":
            return self.pick(["0", "1", "-1", "42", "0x10", "1_000", "0b11", "0o17", "'a'", "9223372036854775807", "1000000"])
        if kind == "float":
            return self.pick(["0.5", "1.0", "-2.5", "1e3", "1e21", "0.1", "1e-7", "0x1p4", "100000000.0"])
        if kind == "bool":
            return self.pick(["true", "false"])
        return self.pick(["nil", '""', "0", "false"]) if self.chance(0.3) else self.path("any")

    def path(self, kind):
        if kind == "any":
            kind = self.pick(["str", "int", "float", "bool", "list", "dict", "nil", "deep", "none"])
        if kind == "deep":
            return self.pick([".Values.tree.a.b", ".Values.tree.list", ".Values.tree", "$.Values.tree.a", ".Release.Name", ".Chart.Version", ".Chart.Name", ".Values.global.g",
                              ".Template.Name", ".Template.BasePath", ".Capabilities.KubeVersion.Minor", ".Release.IsInstall", ".Release.Revision", ".Chart.Keywords"])
        if kind == "none":
            return self.pick([".Values.nope", ".Values.nope.deeper", ".Values.tree.nope", ".Values.str1.field", ".Nope", ".Values.list1.x", ".Release.Nope"]) if self.chance(0.2) else ".Values.nope"
        return f"{self.pick(['', '', '$'])}.Values.{kind}{self.rng.randint(1, 3) if kind != 'nil' else 1}"

    def rooted(self, text):
        """Within `range` and `with`, what begins at the dot mostly fails: there, mostly begin at the root."""
        is_path = text.startswith((".", "(toYaml .", "(keys ."))
        return text.replace(".Values", "$.Values", 1) if is_path and self.inside and self.chance(0.95) and "$.V" not in text else text

    def argument(self, kind, depth):
        if kind in TOKENS:
            return self.rooted(self.pick(TOKENS[kind]))
        if self.chance(0.03):
            kind = self.pick(TYPES)
        if kind == "num":
            kind = self.pick(["int", "int", "float", "str"]) if self.chance(0.9) else "any"
        if kind == "sized":
            kind = self.pick(["str", "list", "dict"])
        if self.variables and self.chance(0.15):
            return self.pick(self.variables)
        roll = self.rng.random()
        if depth <= 0 or roll < 0.25:
            return self.literal(kind) if kind in ("str", "int", "float", "bool") and self.chance(0.5) else self.rooted(self.path(kind))
        return f"({self.call(kind, depth - 1)})"

    def call(self, kind, depth):
        name, wanted = self.pick(FUNCTIONS[kind])
        arguments = []
        for part in wanted.split():
            times = self.rng.randint(1, 3) if part.endswith("*") else 1
            arguments += [self.argument(part.rstrip("*"), depth) for _ in range(times)]
        if self.chance(0.02):
            arguments = arguments[:-1] if self.chance(0.5) else [*arguments, '"more"']
        if len(arguments) > 1 and self.chance(0.3) or len(arguments) == 1 and self.chance(0.5):
            piped = arguments.pop()
            return f"{piped} | {' '.join([name, *arguments])}"
        return " ".join([name, *arguments])

    def pipeline(self, depth=3):
        kind = self.pick(TYPES)
        text = self.call(kind, depth) if self.chance(0.85) else self.argument(kind, 0)
        if self.chance(0.15):
            text += f" | {self.pick(['quote', 'toString', 'toJson', 'default 1', 'len', 'upper', 'trim', 'print', 'toYaml', 'int', 'kindOf', 'not'])}"
        return text

    # Templates.

    def action(self, text):
        left = self.pick(["{{", "{{", "{{ ", "{{- ", "{{-  "])
        right = self.pick(["}}", " }}", " -}}", " }}"])
        if left == "{{" and text.startswith("-"):
            left = "{{ "
        return f"{left}{text}{right}"

    def text(self):
        return self.pick(["", " ", "\n", "  \n", "text", " a ", "\n  x: ", "\t", "é", "} ", "{ ", '"', "{ { "])

    def block(self, depth):
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            parts.append(self.text())
            parts.append(self.statement(depth - 1))
        parts.append(self.text())
        return "".join(parts)

    def scoped(self, depth):
        kept = list(self.variables)
        text = self.block(depth)
        self.variables = kept
        return text

    def statement(self, depth):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.45:
            return self.action(self.pipeline())
        if roll < 0.55:
            text = self.action(f"if {self.pipeline(2)}") + self.scoped(depth)
            if self.chance(0.3):
                text += self.action(f"else if {self.pipeline(1)}") + self.scoped(depth)
            if self.chance(0.5):
                text += self.action("else") + self.scoped(depth)
            return text + self.action("end")
        if roll < 0.68:
            head = self.pick(["", "", "$v := ", "$k, $v := "])
            over = self.pick([self.path("list"), self.path("dict"), f"until {self.rng.randint(0, 4)}", self.argument("list", 2), self.argument("dict", 2), self.argument("any", 1) if self.chance(0.3) else self.path("list")])
            kept = list(self.variables)
            self.variables += [name for name in ("$k", "$v") if name in head]
            self.inside += 1
            body = self.block(depth)
            if self.chance(0.2):
                jump = self.pick(["break", "continue"])
                body = self.action(f"if {self.pipeline(0)}") + self.action(jump) + self.action("end") + body
            self.variables = kept
            self.inside -= 1
            text = self.action(f"range {head}{over}") + body
            if self.chance(0.3):
                text += self.action("else") + self.scoped(depth)
            return text + self.action("end")
        if roll < 0.76:
            head = self.pick(["", "$w := "])
            kept = list(self.variables)
            self.variables += ["$w"] if head else []
            text = self.action(f"with {head}{self.pipeline(1)}")
            self.inside += 1
            text += self.block(depth)
            self.inside -= 1
            self.variables = kept
            if self.chance(0.15):
                text += self.action(f"else with {self.pipeline(0)}") + self.scoped(depth)
            if self.chance(0.4):
                text += self.action("else") + self.scoped(depth)
            return text + self.action("end")
        if roll < 0.86:
            name = self.pick(["$a", "$b", "$c"])
            known = name in self.variables
            sign = "=" if known and self.chance(0.5) else ":="
            text = self.action(f"{name} {sign} {self.pipeline(2)}")
            if not known:
                self.variables.append(name)
            return text + self.action(name)
        if roll < 0.92:
            return self.action(f"template {self.pick(TOKENS['template'])} {self.argument('any', 1)}")
        if roll < 0.97:
            return self.pick(["{{/* comment */}}", "{{- /* trimmed */ -}}", "{{/* over\nlines */}}", "{{- /**/ -}}"])
        return self.pick(["{{ if }}", "{{ /* spaced */ }}", "{{- /* open -}}", "{{ end }}", "{{ nope }}", "{{ .Values.[0] }}", "{{ $undefined }}", "{{ 1 | 2 }}", "{{ (.Values).str1 }}", "{{ .Values.str1 }", "{{ \"open }}",
                          "{{ printf \"%d\" 3 | printf \"%s-%s\" \"a\" }}", "{{ true and false }}", "{{ . | }}", "{{ break }}", "{{ 1.Values }}", "{{ nil }}", "{{ .Values.dict1.a.b }}",
                          "{{ (index .Values \"str1\") }}", "{{ .Files.Get \"data.txt\" }}", "{{ .Files.Glob \"*.txt\" | len }}", "{{ range .Files.Lines \"data.txt\" }}[{{ . }}]{{ end }}",
                          "{{ (.Files.Glob \"*\").AsConfig }}", "{{ .Capabilities.APIVersions.Has \"apps/v1\" }}", "{{ .Release }}", "{{ len .Chart.Name }}", "{{ .Values.tree.a }}"])

    def snippet(self):
        self.variables = []
        return self.block(3)

    # Values.

    def scalar(self):
        return self.pick(SCALARS[self.pick(list(SCALARS))])

    def tree(self, depth, indent):
        pad = "  " * indent
        lines = []
        for key in self.rng.sample(["a", "b", "list", "c", "d-e", "f_g"], self.rng.randint(1, 4)):
            if depth > 0 and key in ("a", "b"):
                lines.append(f"{pad}{key}:\n{self.tree(depth - 1, indent + 1)}")
            elif key == "list":
                lines.append(f"{pad}{key}: {self.pick(LISTS)}")
            else:
                lines.append(f"{pad}{key}: {self.scalar()}")
        return "\n".join(lines)

    def values(self):
        lines = []
        for kind, choices in [*SCALARS.items(), ("list", LISTS), ("dict", DICTS)]:
            for at in range(1, 4):
                lines.append(f"{kind}{at}: {self.pick(choices)}")
        lines.append("tree:\n" + self.tree(2, 1))
        lines.append(f"global: {{g: {self.pick(['1', 'x', 'null'])}}}")
        return "\n".join(lines) + "\n"

    # `--set` and its like.

    def set_flag(self):
        key = self.pick(["a", "b.c", "list1", "list1[0]", "list1[1].x", "tree.a.b", "str1", "new[2]", "dict1.a", "a\\.b", "tree.list[0]", "x[0][1]", "global.g", "sub.name", "sub", "n",
                         "dict1", "tree", "a.b.c.d", "e[", "e[-1]", "e[x]", "", "u.é", "other.on"])
        value = self.pick(["1", "x", "", "true", "null", "1.5", "0123", "{a,b}", "{}", "{1,x,null}", "a\\,b", "1e3", "-1", "[]", "a=b", "{a", "9007199254740993", " sp ", "{a,{b}}", "\"q\"", "a.b", "yes"])
        line = self.pick([f"{key}={value}", f"{key}={value}", f"{key}={value},z={value}", f"{key}={value},", key, f"{key}=1,{key}={value}", f"{key}=[", f"{key},"])
        flag = self.pick(["--set", "--set", "--set", "--set-string", "--set-json", "--set-literal"])
        if flag == "--set-json":
            data = self.pick(["1", '"x"', "null", "[1,2]", '{"q":{"r":1.5}}', "true", "{", "[1,", '"a,b"', "12345678901234567890"])
            line = self.pick([f"{key}={data}", f"{key}={data}", f"{key}={data},w=1", data])
        return flag, line

    # Charts.

    def make(self):
        """Files by path and arguments of one chart."""
        if self.chance(0.7):
            return self.make_snippets()
        return self.make_dependencies()

    def make_snippets(self):
        files = {
            "Chart.yaml": f"apiVersion: v2\nname: case\nversion: 0.1.0\n{self.pick(['', 'appVersion: 1.20', 'appVersion: v1', 'keywords: [a, b]'])}\n",
            "values.yaml": self.values(),
            "data.txt": "one\ntwo\n",
            "templates/_helpers.tpl": '{{- define "case.helper" -}}\nhelp {{ . | toString }}\n{{- end -}}\n{{ define "case.echo" }}[{{ . }}]{{ end }}\n'
                                      '{{ define "case.list" }}{{ range . }}{{ . }},{{ else }}none{{ end }}{{ end }}\n',
        }
        for at in range(self.rng.randint(4, 8)):
            files[f"templates/e{at}.yaml"] = (
                f'{{{{- define "case.e{at}" }}}}{self.snippet()}{{{{ end -}}}}\n'
                f'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: e{at}\ndata:\n  v: {{{{ include "case.e{at}" . | toJson }}}}\n'
            )
        arguments = []
        for _ in range(self.pick([0, 0, 1, 2])):
            arguments += self.set_flag()
        return files, arguments

    def make_dependencies(self):
        """A chart whose templates show its values; what matters is how values of charts, sub-charts and users meet."""
        shown = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Chart.Name }}\ndata:\n  v: {{ .Values | toJson | quote }}\n  s: {{ keys .Subcharts | sortAlpha | join \",\" }}\n"
        files = {"values.yaml": "", "templates/shown.yaml": shown}
        values = ["a: 1", f"list1: {self.pick(LISTS)}", f"dict1: {self.pick(DICTS)}", f"str1: {self.scalar()}", "tree:\n" + self.tree(2, 1)]
        if self.chance(0.6):
            values.append(f"global: {self.pick(['{g: 1}', '{g: {h: 1, i: null}}', 'null', '{}', 'text'])}")
        dependencies = []
        for name in self.rng.sample(["sub", "other", "lib"], self.rng.randint(1, 3)):
            entry = {"name": name, "version": self.pick(["0.1.0", "0.1.0", "^0.1", ">=0.2", "*"]), "repository": ""}
            if self.chance(0.4):
                entry["condition"] = self.pick([f"{name}.on", f"{name}.on,global.{name}", "flags.x", f"{name}.nope"])
            if self.chance(0.3):
                entry["tags"] = self.rng.sample(["front", "back"], self.rng.randint(1, 2))
            if self.chance(0.25):
                entry["alias"] = self.pick([name + "2", "renamed"])
            if self.chance(0.4):
                entry["import-values"] = self.pick([["data"], [{"child": "inner", "parent": "taken"}], [{"child": "exports.data", "parent": "."}], ["data", {"child": "nope", "parent": "x"}], ["nope"]])
            dependencies.append(entry)
            own = entry.get("alias", name)
            if self.chance(0.7):
                values.append(f"{own}:" + self.pick([" {on: true}", " {on: false, x: 1}", " {x: null, inner: {k: 2}}", " {}", " null", " {inner: null, on: 'text'}", " 3"]))
            kind = "type: library\n" if name == "lib" and self.chance(0.5) else ""
            files[f"charts/{name}/Chart.yaml"] = f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n{kind}"
            files[f"charts/{name}/values.yaml"] = (
                f"x: {self.scalar()}\ninner:\n  k: 1\n  l: {self.pick(LISTS)}\nexports:\n  data:\n    d: {self.scalar()}\n    tree: {{a: 5}}\n"
                f"{self.pick(['', 'global: {g: 9, own: 1}', 'global: {g: {h: 2}}', 'nothing: null'])}\n"
            )
            files[f"charts/{name}/templates/shown.yaml"] = shown
            if self.chance(0.3):
                files[f"charts/{name}/charts/leaf/Chart.yaml"] = "apiVersion: v2\nname: leaf\nversion: 1.0.0\n"
                files[f"charts/{name}/charts/leaf/values.yaml"] = "y1: 1\nglobal: {leaf: true}\n"
                files[f"charts/{name}/charts/leaf/templates/shown.yaml"] = shown
        if self.chance(0.4):
            values.append(f"tags: {self.pick(['{front: true}', '{front: false, back: true}', '{back: false}', '{front: false}', 'null'])}")
        if self.chance(0.3):
            values.append(f"flags: {self.pick(['{x: true}', '{x: false}', '{x: 1}'])}")
        files["Chart.yaml"] = f"apiVersion: v2\nname: case\nversion: 0.1.0\ndependencies: {json.dumps(dependencies)}\n"
        files["values.yaml"] = "\n".join(values) + "\n"
        arguments = []
        if self.chance(0.5):
            files["user.yaml"] = self.pick(["a: null\ntree: null\n", "sub: {on: true, x: user, inner: {k: null}}\n", "global: {g: user}\nlist1: [9]\n", "tags: {front: true}\ndict1: text\n",
                                            "str1: {now: table}\ntree: {a: 1, list: {}}\n", "", "- list\n", "other: null\nlib: {x: 2}\n"])
            arguments += ["--values", "user.yaml"]
        for _ in range(self.pick([0, 1, 1, 2, 3])):
            arguments += self.set_flag()
        return files, arguments
