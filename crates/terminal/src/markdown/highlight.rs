//! Colors of code: comments, strings, numbers, keywords and calls, for the common languages.
//!
//! One pass over the text with a table of languages. Grammars of an editor would be more exact, but they take tens of
//! megabytes of memory, and this program is to stay small.

use crate::text::{Line, Style};
use crate::theme::Theme;

/// What a highlighter must know of a language.
struct Language {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Characters that begin and end a string.
    quotes: &'static str,
    keywords: &'static str,
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));

const LANGUAGES: [Language; 17] = [
    Language {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"",
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Language {
        names: &["python", "py", "python3"],
        line_comments: &["#"],
        block_comment: None,
        quotes: "\"'",
        keywords: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs", "cjs"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"'`",
        keywords: "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface keyof let namespace never new null number object of private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while with yield",
    },
    Language {
        names: &["go", "golang"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"'`",
        keywords: "bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint var",
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "hpp", "cxx", "objc", "cuda"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"'",
        keywords: "auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false float for friend goto if include define ifdef ifndef endif inline int long namespace new noexcept NULL nullptr operator private protected public register return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while",
    },
    Language {
        names: &["java", "kotlin", "kt", "scala", "groovy", "csharp", "cs", "c#", "swift", "dart"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"'",
        keywords: "abstract as async await base bool boolean break byte case catch char class companion const continue data def default delegate do double else enum extends extension false final finally float for foreach fun func get guard if implements import in init int interface internal is lazy let long namespace new nil null object open out override package private protected protocol public readonly return sealed self set static string struct super suspend switch this throw throws trait true try type using val var virtual void when where while yield",
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "shellsession"],
        line_comments: &["#"],
        block_comment: None,
        quotes: "\"'",
        keywords: "break case continue declare do done elif else esac eval exec exit export fi for function if in local readonly return select set shift source then trap unset until while",
    },
    Language {
        names: &["json", "json5", "jsonc", "jsonl"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: "\"",
        keywords: "true false null",
    },
    Language {
        names: &["yaml", "yml", "toml", "ini", "conf", "properties", "env"],
        line_comments: &["#", ";"],
        block_comment: None,
        quotes: "\"'",
        keywords: "true false null yes no on off",
    },
    Language {
        names: &["html", "xml", "svg", "vue", "svelte", "xhtml"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: "\"'",
        keywords: "",
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        line_comments: &[],
        block_comment: C_COMMENT,
        quotes: "\"'",
        keywords: "important media import include mixin extend supports keyframes from to and not only",
    },
    Language {
        names: &["sql", "postgresql", "mysql", "sqlite", "psql"],
        line_comments: &["--"],
        block_comment: C_COMMENT,
        quotes: "\"'",
        keywords: "add all alter and as asc begin between by case commit constraint create cross database default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with",
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex", "exs", "crystal"],
        line_comments: &["#"],
        block_comment: None,
        quotes: "\"'",
        keywords: "alias and begin break case class def defmodule defp defstruct do else elsif end ensure false fn for if import in module next nil not or private raise redo require rescue retry return self super then true undef unless until use when while yield",
    },
    Language {
        names: &["php"],
        line_comments: &["//", "#"],
        block_comment: C_COMMENT,
        quotes: "\"'",
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif extends false final finally fn for foreach function global if implements include instanceof interface match namespace new null or private protected public readonly require return static switch this throw trait true try use var while yield",
    },
    Language {
        names: &["lua", "haskell", "hs", "ada", "elm"],
        line_comments: &["--"],
        block_comment: None,
        quotes: "\"",
        keywords: "and break case class data deriving do else elseif end false for function if import in instance let local module newtype nil not of or repeat return then true type until where while",
    },
    Language {
        names: &[
            "dockerfile",
            "docker",
            "makefile",
            "make",
            "cmake",
            "hcl",
            "terraform",
            "tf",
            "nix",
            "r",
            "perl",
            "pl",
            "julia",
            "jl",
        ],
        line_comments: &["#"],
        block_comment: None,
        quotes: "\"'",
        keywords: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM LABEL RUN USER VOLUME WORKDIR data else end endif for foreach function if in inherit let library local module my our output package provider resource return sub then use using variable while with",
    },
    Language {
        names: &["zig", "proto", "protobuf", "graphql", "solidity", "verilog", "glsl", "wgsl"],
        line_comments: &["//", "#"],
        block_comment: C_COMMENT,
        quotes: "\"",
        keywords: "and bool break catch comptime const continue contract defer else enum error false fn for function if import input int32 int64 interface message mutation null or orelse package pub query repeated return rpc service string struct switch test true try type union uniform usize var void while",
    },
];

/// What an earlier line left open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    None,
    Comment,
    /// A string with triple quotes or backticks.
    Text(char),
}

/// Colors code line by line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Highlighter {
    language: Option<usize>,
    open: Open,
    theme: Theme,
}

impl Highlighter {
    /// A highlighter for a language by its name or the extension of its files; an unknown language has no colors.
    pub(crate) fn new(language: &str, theme: Theme) -> Self {
        let name = language.trim().to_ascii_lowercase();
        let language = LANGUAGES.iter().position(|language| language.names.contains(&name.as_str()));
        Self { language, open: Open::None, theme }
    }

    /// A highlighter for a file by its name.
    pub(crate) fn for_path(path: &str, theme: Theme) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        Self::new(name.rsplit('.').next().unwrap_or_default(), theme)
    }

    /// Colors the next line.
    pub(crate) fn line(&mut self, text: &str) -> Line {
        let mut line = Line::empty();
        match self.language {
            Some(language) => self.scan(&LANGUAGES[language], text, &mut line),
            None => _ = line.push(text, Style::PLAIN),
        }
        line
    }

    fn scan(&mut self, language: &Language, text: &str, line: &mut Line) {
        let mut rest = text;
        while !rest.is_empty() {
            let (length, style) = self.token(language, rest);
            line.push(&rest[..length], style);
            rest = &rest[length..];
        }
    }

    /// Length and style of the token that `rest` begins with.
    fn token(&mut self, language: &Language, rest: &str) -> (usize, Style) {
        match self.open {
            Open::Comment => {
                return self.open_until(
                    language.block_comment.map_or("", |(_, end)| end),
                    rest,
                    self.theme.comment,
                );
            }
            Open::Text(quote) => {
                let end = if quote == '`' { "`".to_owned() } else { quote.to_string().repeat(3) };
                return self.open_until(&end, rest, self.theme.string);
            }
            Open::None => {}
        }
        let first = rest.chars().next().unwrap_or_default();
        if language.line_comments.iter().any(|start| rest.starts_with(start)) {
            return (rest.len(), self.theme.comment);
        }
        if let Some((start, _)) = language.block_comment.filter(|(start, _)| rest.starts_with(start)) {
            self.open = Open::Comment;
            return (start.len(), self.theme.comment);
        }
        if language.quotes.contains(first) {
            return self.string(rest, first);
        }
        if first.is_ascii_digit() {
            let is_part =
                |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
            return (prefix(rest, is_part), self.theme.number);
        }
        if is_word(first) {
            return self.word(language, rest);
        }
        (
            prefix(rest, |c| !is_word(c) && !c.is_ascii_digit() && c == first).max(first.len_utf8()),
            Style::PLAIN,
        )
    }

    /// The rest of what an earlier token opened, up to `end`.
    fn open_until(&mut self, end: &str, rest: &str, style: Style) -> (usize, Style) {
        match rest.find(end) {
            Some(at) => {
                self.open = Open::None;
                (at + end.len(), style)
            }
            None => (rest.len(), style),
        }
    }

    fn string(&mut self, rest: &str, quote: char) -> (usize, Style) {
        let triple = quote.to_string().repeat(3);
        if rest.starts_with(&triple) || (quote == '`' && !rest[1..].contains('`')) {
            self.open = Open::Text(quote);
            return (if quote == '`' { 1 } else { 3 }, self.theme.string);
        }
        let mut is_escaped = false;
        for (at, character) in rest.char_indices().skip(1) {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if character == quote => return (at + quote.len_utf8(), self.theme.string),
                _ => {}
            }
        }
        // A quote without its partner, as in "don't", is no string.
        if quote == '\'' { (1, Style::PLAIN) } else { (rest.len(), self.theme.string) }
    }

    fn word(&self, language: &Language, rest: &str) -> (usize, Style) {
        let length = prefix(rest, |character| is_word(character) || character.is_ascii_digit());
        let word = &rest[..length];
        let is_keyword = language.keywords.split(' ').any(|keyword| {
            keyword == word || (language.names[0] == "sql" && keyword.eq_ignore_ascii_case(word))
        });
        let after = rest[length..].chars().next();
        let style = match () {
            () if is_keyword => self.theme.keyword,
            () if after == Some('(') => self.theme.function,
            () => Style::PLAIN,
        };
        (length, style)
    }
}

/// Colors a whole text.
pub(crate) fn lines(code: &str, language: &str, theme: Theme) -> Vec<Line> {
    let mut highlighter = Highlighter::new(language, theme);
    code.lines().map(|line| highlighter.line(line)).collect()
}

fn is_word(character: char) -> bool {
    character.is_alphabetic() || character == '_' || character == '$'
}

fn prefix(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_part(character)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The line with marks for its styles: keyword `k`, string `s`, comment `c`, number `n`, function `f`.
    fn marked(text: &str, language: &str) -> Vec<String> {
        let theme = Theme::DARK;
        let mark = |style| match style {
            style if style == theme.keyword => "k:",
            style if style == theme.string => "s:",
            style if style == theme.comment => "c:",
            style if style == theme.number => "n:",
            style if style == theme.function => "f:",
            _ => "",
        };
        lines(text, language, theme)
            .iter()
            .flat_map(|line| {
                line.spans()
                    .iter()
                    .map(|span| format!("{}{}", mark(span.style()), span.text()))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn tokens_have_their_colors() {
        let rows: [(&str, &str, &[&str]); 7] = [
            ("rust", "let x = f(1); // y", &["k:let", " x = ", "f:f", "(", "n:1", "); ", "c:// y"]),
            ("rust", "'a str \"q\\\"r\"", &["'a str ", "s:\"q\\\"r\""]),
            ("python", "x = '''a\nb''' # c", &["x = ", "s:'''a", "s:b'''", " ", "c:# c"]),
            ("c", "/* a\nb */ int x", &["c:/* a", "c:b */", " ", "k:int", " x"]),
            ("sql", "SELECT 1", &["k:SELECT", " ", "n:1"]),
            ("js", "`a\nb` + 1", &["s:`a", "s:b`", " + ", "n:1"]),
            ("unknown", "let x", &["let x"]),
        ];
        for (language, text, expected) in rows {
            assert_eq!(marked(text, language), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn colors_change_no_text(text in "[ -~\n]{0,200}", language in 0..LANGUAGES.len()) {
            let colored = lines(&text, LANGUAGES[language].names[0], Theme::DARK);
            let joined: Vec<String> = colored.iter().map(Line::text).collect();
            let expected: Vec<String> = text.lines().map(str::to_owned).collect();
            prop_assert_eq!(joined, expected);
        }
    }
}
