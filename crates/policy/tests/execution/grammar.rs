//! Commands: from plain ones to every trick that bash knows, mostly of the sort that has a chance to be allowed.
//!
//! Nothing here may do harm if it is run: no absolute path but `/dev/null`, no network, no signals, no endless loop.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const PROGRAMS: &[&str] = &[
    "tool", "tool", "tool", "tool", "npm", "make", "fail", "git", "ls", "cat", "head", "wc", "grep", "sort",
    "find", "sed", "uniq", "date", "rm", "touch", "mkdir", "cp", "tee", "python3", "evil", "curl", "echo",
    "printf", "true", "test", "cd", "pwd", "type",
];

/// Other ways to write a program.
const DISGUISED: &[&str] = &[
    "t'oo'l",
    "\"tool\"",
    "\\tool",
    "'to'ol",
    "too\\l",
    "./tool",
    "$x",
    "tool$y",
    "$(evil x)",
    "too{l,k}",
    "to*l",
    "?ool",
    "'evil'",
    "e\\vil",
    "ev''il",
    "''tool",
    "tool\\\n",
    "$'tool'",
    "$'\\x65vil'",
    "[t]ool",
    "too[l",
    "~/x",
    "eval",
    "exec",
    ".",
    "source",
    "set",
    "export",
    "read",
    "trap",
    "alias",
    "declare",
    "let",
    "unset",
    "shopt",
    "mapfile",
    "printf -v x",
    "bash",
    "sh",
    "bash -c",
    "sh -c",
    "eval --",
    "hash -p",
    "enable -n",
    "TOOL",
    "Evil",
    "[",
    "[[",
    ":",
    "if",
    "then",
    "time",
    "coproc",
    "function",
    "tool()",
    "((",
    "!",
    "{",
    "}",
    "select",
    "case",
];

const PLAIN: &[&str] = &[
    "a",
    "b",
    "run",
    "test",
    "stop",
    "status",
    "log",
    "all",
    "publish",
    "x.txt",
    "a.txt",
    "src",
    "src/b.txt",
    "-n",
    "-la",
    "-1",
    "--all",
    "--version",
    "--force",
    "1",
    "5",
    "x=1",
    "+x",
    "%",
    ":",
    "@",
    "a:b",
    "a,b",
    "..",
    ".",
    "secret.txt",
    ".env",
    "out/a.log",
    "../outside/data.txt",
    "-",
    "--",
    "=",
    "s/a/b/",
    "-exec",
    "-o",
    "-i",
    "evil",
    "a#b",
    "]",
    "}",
    "link/data.txt",
    "-name",
    "-delete",
    "{}",
    "1,2p",
    "-e",
    "-c",
    "a==b",
    "^",
    "x",
    "-r",
    "-p",
];

const QUOTED: &[&str] = &[
    "'a b'",
    "\"a b\"",
    "'a'b",
    "\"a\"'b'",
    "\\a",
    "a\\ b",
    "''",
    "\"\"",
    "'#x'",
    "\\#x",
    "\"a'b\"",
    "'a\"b'",
    "\"\\$x\"",
    "'$x'",
    "'$(evil x)'",
    "'`evil x`'",
    "\"a\\\"b\"",
    "\\;",
    "';'",
    "\"&&\"",
    "'|'",
    "\"a;evil x\"",
    "'a\nevil x'",
    "\"a\nevil x\"",
    "\\-n",
    "'*'",
    "\"*\"",
    "\\*",
    "\"~\"",
    "'~'/x",
    "\"{a,b}\"",
    "'{a,b}'",
    "\\{a,b}",
    "\"!\"",
    "\\~",
    "'\\'",
    "\"\\\\\"",
    "\\\\",
    "\"`\"",
    "\\`",
    "\\$x",
    "\"\\`evil x\\`\"",
    "'--force'",
    "--for''ce",
    "-\\-force",
    "'evil x'",
    "\"evil x; evil x\"",
    "'>x'",
    "\\>x",
    "\"a\\\nb\"",
    "'$HOME'",
    "'a' 'b'",
    "st'op'",
];

const GLOBS: &[&str] =
    &["*", "?", "[ab]*", "*.txt", "src/*", "-*", "[!a]", "a[b", "[-]o", "s*t.txt", "?o", ".e*", "-[oe]*"];

const EXPANSIONS: &[&str] = &[
    "$x",
    "${x}",
    "\"$x\"",
    "$HOME",
    "\"$HOME\"",
    "~",
    "~/x",
    "~/.ssh/key",
    "\"$HOME\"/x",
    "$(evil x)",
    "\"$(evil x)\"",
    "`evil x`",
    "\"`evil x`\"",
    "<(evil x)",
    ">(evil x)",
    "{a,b}",
    "{1..3}",
    "a{,b}",
    "{-exec,evil}",
    "$((1+2))",
    "$((x))",
    "$((x[$(evil x)]))",
    "$((1 + 2 * (3)))",
    "$'a'",
    "$'\\x2dn'",
    "$'a\\nb'",
    "$'\\'; evil x'",
    "$\"a\"",
    "${x:-evil}",
    "${x:=$(evil x)}",
    "${HOME:+$(evil x)}",
    "\"$(cat <<'E'\ntext $(evil x)\nE\n)\"",
    "$1",
    "$@",
    "$?",
    "$[1+1]",
    "!$",
    "~root",
    "~+",
    "${x@P}",
    "$(<secret.txt)",
    "\"${x-`evil x`}\"",
    "${x/a/$(evil x)}",
    "$",
    "$$",
    "\"$\"",
    "a$",
    "$_",
    "${!x}",
    "$(( $(evil x) ))",
    "$((\n1))",
    "\"${x:-\"$(evil x)\"}\"",
];

const ASSIGNMENTS: &[&str] = &[
    "CI=1",
    "LANG=C",
    "NODE_ENV=test",
    "TERM=dumb",
    "TZ=UTC",
    "CI='1'",
    "CI=",
    "A=1",
    "PATH=src",
    "A+=x",
    "a[0]=1",
    "BASH_ENV=x",
    "IFS=o",
    "HOME=out",
    "CI=$(evil x)",
    "CI=`evil x`",
    "LC_ALL=C",
    "CI=~",
    "CI=*",
    "CI=a\\ b",
    "CI=\"$(evil x)\"",
    "CI=(a b)",
    "x=evil",
    "CI=1;",
    "RUST_LOG=a,b",
    "CI={a,b}",
    "GIT_PAGER=evil",
    "PS4='$(evil x)'",
];

const REDIRECTS: &[&str] = &[
    "> x.txt",
    ">> out/a.log",
    "2> err.log",
    "2>&1",
    "> /dev/null",
    "2>/dev/null",
    "< a.txt",
    "< secret.txt",
    "< ../outside/data.txt",
    "< link/data.txt",
    "&> x.txt",
    "&>> out/a.log",
    ">| x.txt",
    "<> x.txt",
    "{v}> x.txt",
    ">&x.txt",
    "3> x.txt",
    "> ~/x",
    "> \"$HOME\"/x",
    "> .git/config",
    "<<< word",
    "<<< \"$(evil x)\"",
    "<<<secret.txt",
    ">&2",
    "<&-",
    "2>&-",
    "> ../x",
    "> $x",
    "> 'a b'",
    "1>&2",
    "> link/x",
    "> out/keep.txt",
    ">out/../x.txt",
    "> out/$x",
    "> {a,b}",
    "> x.tx?",
    ">x.txt 2>&1",
    "2>&1 >x.txt",
    ">& /dev/null",
    "< <(evil x)",
    "> >(evil x)",
    "2>x.log",
    "<x.txt",
    "> .env",
    "> -",
    "> 1",
    ">&1",
    "> \"out/a b\"",
    "> out/\\a",
    "> 'out/'a.log",
    "<<<$(evil x)",
    "> x.txt#a",
    "> $'x.txt'",
    ">>\tout/b.log",
    "12> x.txt",
    "a> x.txt",
];

/// What may stand before a command.
const PREFIXES: &[&str] = &[
    "timeout 5 ",
    "timeout -k 1 --signal=9 5 ",
    "time ",
    "time -p ",
    "nice -n 5 ",
    "nice -5 ",
    "nohup ",
    "stdbuf -oL ",
    "command ",
    "command -p ",
    "builtin ",
    "xargs ",
    "! ",
    "env ",
    "env A=1 ",
    "sudo ",
    "setsid ",
    "exec ",
    "command -- ",
    "timeout 5s command ",
    "xargs -n 1 ",
    "echo evil x | xargs ",
    "echo a | ",
    "time CI=1 ",
    "! ! ",
    "nice ",
    "xargs -I {} ",
    "builtin command ",
    "time -- ",
    "watch ",
    "timeout --foreground 5 ",
    "\\time ",
    "coproc ",
    "time ! ",
];

/// Ways to write a command into another text; `@` stands for it.
const WRAPPINGS: &[&str] = &[
    "@ && tool b",
    "tool b; @",
    "@; true",
    "@ | cat",
    "echo a | @",
    "@ || tool",
    "! @",
    "if true; then @; fi",
    "if @; then true; else tool; fi",
    "for i in 1 2; do @; done",
    "for i in evil x; do tool; @; done",
    "while @; false; do tool; done",
    "until @; true; do tool; done",
    "true\n@",
    "@ # evil x\n",
    "# evil x\n@",
    "@ > /dev/null 2>&1",
    "@ # it's",
    "@ #a\nevil x",
    "\n@\n",
    "  @  ",
    "\t@;",
    "@ |& cat",
    "@\n\n#x",
    "if false\nthen evil x\nelif @\nthen tool\nfi",
    "[[ a == b ]] && @",
    "[ -n a ] && @",
    "[[ -f a.txt ]] || @",
    "cat <<'E'\n@\nE\n",
    "cat <<E\n@\nE\n",
    "cat <<-'E'\n\t@\n\tE\n",
    "tool <<E\n@\nE\ntool a",
    "tool <<'E F'\n@\nE F\n",
    "tool <<\\E && tool b\n@\nE\n",
    "tool <<A <<B\n@\nA\nb\nB\n",
    "cat <<E | tool\n@\nE\n",
    "cat <<'E'\na\nE\n@",
    "cd src && @",
    "cd . && @",
    "for i in *; do @; done",
    "for i in a\ndo @\ndone",
    "[[ a =~ b ]]; @",
    "test -f a.txt && @",
];

/// Ways that ask more often than not.
const STRANGE: &[&str] = &[
    "(@)",
    "{ @; }",
    "@ &",
    "case x in x) @;; esac",
    "case x in (x) @;& *) tool;; esac",
    "f() { @; }; f",
    "function f { @; }\nf",
    "tool $(@)",
    "tool \"$(@)\"",
    "tool `@`",
    "cat <(@)",
    "tool ${x:-$(@)}",
    "cat <<E\n$(@)\nE\n",
    "bash -c '@'",
    "bash -c \"@\"",
    "eval '@'",
    "eval @",
    "trap '@' EXIT",
    "((@))",
    "coproc @",
    "select i in a; do @; done < a.txt",
    "for ((i=0;i<2;i++)); do @; done",
    "x='@'; $x",
    "bash <<E\n@\nE\n",
    "bash <<'E'\n@\nE\n",
    "bash <<< '@'",
    "echo '@' | bash",
    "alias tool='@'; tool",
    "find . -exec @ \\;",
    "tool <<E\n`@`\nE\n",
    "[[ -n $(@) ]]",
    "[[ a -eq 'x[$(@)]' ]]",
    "test -v 'x[$(@)]'",
    "x=$(@)",
    "x=(@)",
    "time { @; }",
    "tool $((x[$(@)]))",
    "printf -v 'x[$(@)]' a",
    "((x[$(@)]))",
    "shopt -s expand_aliases\nalias evil=tool\n@",
    "tool() { evil x; }; @",
    "if true; then @; fi > x.txt",
    "for i in a; do @; done > x.txt",
    "while @; false; do :; done < secret.txt",
    "@ <<E\n\\\nE\nevil x\nE\n",
    "cat <<\"E\"\n@\nE \nE\n",
    "@ \\\n; tool",
    "set -- @; \"$@\"",
    "tool \"$(cat <<'E'\n@\nE\n)\"",
    "tool \"$(cat <<'E'\na\nE\n@)\"",
    "env -S '@'",
    "exec @",
    "{ @\n}",
    "( @\n)",
];

/// What is thrown into a text at any place.
const DUST: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "#",
    " ",
    "!",
    "*",
    "=",
    "[",
    "]",
    "~",
    ",",
    "\t",
    "\\\n",
    " #",
    "&&",
    "||",
    ";;",
    "$(",
    "<<",
    "''",
    "\"\"",
    "-",
    "evil",
    " evil x ",
    "\nevil x\n",
    "$x",
    ";evil x;",
    "{,}",
    "\u{a0}",
    "é",
    "\r",
    "%",
    ":",
    "^",
    "?",
    "@",
    "x=",
    "<<<",
    "2>",
    "!!",
    "time ",
    "then",
    " do ",
    " in ",
];

/// All texts above in which a slash stands.
const PATHS: &[&str] = &[
    "src/b.txt",
    "src/*",
    "out/a.log",
    "out/b.log",
    "out/keep.txt",
    "out/../x.txt",
    "out/$x",
    "out/a",
    "out/\\a",
    "'out/'a.log",
    "../outside/data.txt",
    "link/data.txt",
    "link/x",
    "s/a/b/",
    "./tool",
    "~/x",
    "~/.ssh/key",
    "'~'/x",
    "\"$HOME\"/x",
    "/dev/null",
    ".git/config",
    "../x",
    "${x/a/",
];

/// Whether every path in the text is one of those above, so that nothing far away can be meant.
pub(crate) fn stays_here(command: &str) -> bool {
    let rest = PATHS.iter().fold(command.to_owned(), |text, path| text.replace(path, ""));
    !rest.contains('/')
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(texts).prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = String> + Clone {
    let word = prop_oneof![
        30 => one_of(PLAIN),
        6 => one_of(QUOTED),
        2 => one_of(GLOBS),
        1 => one_of(EXPANSIONS),
    ];
    let joined = (one_of(PLAIN), one_of(QUOTED)).prop_map(|(a, b)| a + &b);
    prop_oneof![20 => word, 1 => joined]
}

fn blanks() -> impl Strategy<Value = String> + Clone {
    prop_oneof![30 => Just(" ".to_owned()), 2 => Just("  ".to_owned()), 1 => Just("\t".to_owned()), 1 => Just(" \\\n".to_owned())]
}

/// Some words, with what stands before and among them.
fn simple() -> impl Strategy<Value = String> {
    let program = prop_oneof![14 => one_of(PROGRAMS), 1 => one_of(DISGUISED)];
    let few = |strategy: BoxedStrategy<String>, seldom: u32| prop_oneof![seldom => Just(Vec::new()), 1 => vec(strategy, 1..3)];
    let assignments = few(one_of(ASSIGNMENTS).boxed(), 9);
    let prefixes = few(one_of(PREFIXES).boxed(), 6);
    let redirects = few(one_of(REDIRECTS).boxed(), 4);
    (assignments, prefixes, program, vec((blanks(), words()), 0..4), redirects, any::<prop::sample::Index>())
        .prop_map(|(assignments, prefixes, program, words, redirects, place)| {
            let mut pieces: Vec<String> =
                words.iter().map(|(blank, word)| format!("{blank}{word}")).collect();
            for redirect in redirects {
                let at = place.index(pieces.len() + 1);
                pieces.insert(at, format!(" {redirect}"));
            }
            let assignments: String = assignments.iter().map(|text| format!("{text} ")).collect();
            format!("{assignments}{}{program}{}", prefixes.concat(), pieces.concat())
        })
}

fn wrap(inner: &str, outer: &str) -> String {
    outer.replace('@', inner)
}

fn compounds() -> impl Strategy<Value = String> {
    let outer = prop_oneof![5 => select(WRAPPINGS), 1 => select(STRANGE)];
    let wrapped = (
        simple(),
        prop_oneof![3 => vec(outer.clone(), 0..1), 3 => vec(outer.clone(), 1..2), 1 => vec(outer, 2..4)],
    )
        .prop_map(|(inner, outers)| outers.iter().fold(inner, |inner, outer| wrap(&inner, outer)));
    let joint = select(vec![" && ", "; ", " | ", "\n", " || ", ";", "&&", "|"]);
    let two = (simple(), joint, simple()).prop_map(|(a, joint, b)| format!("{a}{joint}{b}"));
    prop_oneof![4 => wrapped, 1 => two]
}

/// Any command.
pub(crate) fn commands() -> impl Strategy<Value = String> {
    let dust = vec((any::<prop::sample::Index>(), select(DUST)), 1..4);
    let dust = prop_oneof![3 => Just(Vec::new()), 2 => dust];
    (compounds(), dust).prop_map(|(command, dust)| {
        let mut text: Vec<char> = command.chars().collect();
        for (place, piece) in dust {
            let at = place.index(text.len() + 1);
            text.splice(at..at, piece.chars());
        }
        text.into_iter().collect()
    })
}

#[test]
fn only_known_paths_are_run() {
    for tame in ["tool src/b.txt > /dev/null", "cat ../outside/data.txt", "tool a"] {
        assert!(stays_here(tame), "{tame}");
    }
    for wild in ["tool > /x", "cat /etc/passwd", "tool > $y/x", "tool ../../x", "/bin/tool"] {
        assert!(!stays_here(wild), "{wild}");
    }
}
