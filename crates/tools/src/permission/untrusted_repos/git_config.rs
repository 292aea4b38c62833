//! Parses git config files. Which settings run programs is in the policy crate.

use std::iter::Peekable;
use std::str::Chars;

use whimbrel_policy::git_settings::runs_program_when_reading;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitSetting {
    section: String,
    /// Quoted part of the section header.
    subsection: Option<String>,
    name: String,
    /// Value; `true` if it has none.
    pub(super) value: String,
}

impl GitSetting {
    /// Lower-case section and name, without the subsection.
    pub(super) fn key(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Full name, as git shows it.
    pub(super) fn full_name(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.name),
            None => self.key(),
        }
    }

    /// Returns true if git runs a program, or reads further settings or objects, because of this setting in a read-only
    /// command.
    pub(super) fn runs_program(&self) -> bool {
        runs_program_when_reading(&self.section, &self.name, &self.value)
    }
}

/// Parses a config file; `None` if it is not understood.
pub(super) fn parse_config(text: &str) -> Option<Vec<GitSetting>> {
    let mut reader = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut section = (String::new(), None);
    let mut found = Vec::new();
    while let Some(character) = reader.peek().copied() {
        match character {
            '#' | ';' => skip_line(&mut reader),
            '[' => section = parse_header(&mut reader)?,
            _ if character.is_whitespace() => {
                reader.next();
            }
            _ if character.is_ascii_alphabetic() && !section.0.is_empty() => {
                let name = parse_word(&mut reader).to_ascii_lowercase();
                let value = parse_value(&mut reader)?;
                found.push(GitSetting {
                    section: section.0.clone(),
                    subsection: section.1.clone(),
                    name,
                    value,
                });
            }
            _ => return None,
        }
    }
    Some(found)
}

type Reader<'a> = Peekable<Chars<'a>>;

fn skip_line(reader: &mut Reader<'_>) {
    reader.by_ref().find(|character| *character == '\n');
}

fn skip_blanks(reader: &mut Reader<'_>) {
    while reader.next_if(|character| matches!(character, ' ' | '\t' | '\r')).is_some() {}
}

fn parse_word(reader: &mut Reader<'_>) -> String {
    let mut word = String::new();
    while let Some(character) =
        reader.next_if(|character| character.is_ascii_alphanumeric() || *character == '-')
    {
        word.push(character);
    }
    word
}

/// `[section]`, `[section "sub"]` or, in the old form, `[section.sub]`.
fn parse_header(reader: &mut Reader<'_>) -> Option<(String, Option<String>)> {
    reader.next_if_eq(&'[')?;
    let section = parse_word(reader).to_ascii_lowercase();
    let mut subsection = None;
    if reader.next_if_eq(&'.').is_some() {
        let mut name = String::new();
        while let Some(character) = reader.next_if(|character| !matches!(character, ']' | '\n')) {
            name.push(character);
        }
        subsection = Some(name);
    }
    skip_blanks(reader);
    if reader.next_if_eq(&'"').is_some() {
        let mut name = String::new();
        loop {
            match reader.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => name.push(reader.next()?),
                character => name.push(character),
            }
        }
        subsection = Some(name);
    }
    skip_blanks(reader);
    reader.next_if_eq(&']')?;
    (!section.is_empty()).then_some((section, subsection))
}

/// Parses the value behind a name, up to the end of the line.
fn parse_value(reader: &mut Reader<'_>) -> Option<String> {
    skip_blanks(reader);
    match reader.peek() {
        None | Some('\n' | '#' | ';') => {
            skip_line(reader);
            return Some("true".to_owned());
        }
        Some('=') => {
            reader.next();
        }
        Some(_) => return None,
    }
    let mut value = String::new();
    let mut quoted = false;
    while let Some(character) = reader.next() {
        match character {
            '\n' if quoted => return None,
            '\n' => break,
            '#' | ';' if !quoted => {
                skip_line(reader);
                break;
            }
            '"' => quoted = !quoted,
            '\\' => match reader.next()? {
                '\n' => {}
                '\r' => {
                    reader.next_if_eq(&'\n')?;
                }
                escaped => value.push(escaped),
            },
            _ => value.push(character),
        }
    }
    (!quoted).then(|| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Option<String> {
        let all = parse_config(text)?;
        Some(
            all.iter()
                .map(|one| format!("{}={}", one.full_name(), one.value))
                .collect::<Vec<_>>()
                .join(" | "),
        )
    }

    #[test]
    fn config_is_parsed_as_git_does() {
        let rows = [
            ("", Some("")),
            ("[core]\n\tbare = false\n\tfsmonitor\n", Some("core.bare=false | core.fsmonitor=true")),
            ("[Core] FSMonitor = a b ; c\n", Some("core.fsmonitor=a b")),
            ("[remote \"a\\\"b\"]\n url = \"x # y\" # z\n", Some("remote.a\"b.url=x # y")),
            ("[diff.x]\ntextconv = a\\\n  b\n", Some("diff.x.textconv=a  b")),
            ("# c\n; d\n[a]b=c", Some("a.b=c")),
            ("\u{feff}[a]\r\nb = c\r\n", Some("a.b=c")),
            ("[a\nb = c\n", None),
            ("b = c\n", None),
            ("[a]\nb = \"c\n", None),
            ("[a]\n!\n", None),
            ("[a]\nb : c\n", None),
        ];
        for (text, expected) in rows {
            assert_eq!(rendered(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn settings_that_run_programs_are_detected() {
        let running = "[core]\nfsmonitor=x\npager=x\nsshCommand=x\n[diff]\nexternal=x\n[diff \"a\"]\ntextconv=x\ncommand=x\n\
            [filter \"a\"]\nclean=x\nsmudge=x\nprocess=x\n[include]\npath=x\n[includeIf \"gitdir:/\"]\npath=x\n\
            [gpg]\nprogram=x\n[gpg \"ssh\"]\nprogram=x\n[remote \"o\"]\nurl=ext::x\nvcs=x\nuploadpack=x\npromisor=true\n\
            [extensions]\npartialClone=o\n[pager]\nlog=x\n[submodule \"a\"]\nupdate=!x\n[hook \"a\"]\ncommand=x\n";
        for setting in parse_config(running).unwrap() {
            assert!(setting.runs_program(), "{}", setting.full_name());
        }
        let plain = "[core]\nrepositoryformatversion=0\nfilemode=true\nbare=false\nlogallrefupdates=true\nfsmonitor=true\n\
            [remote \"origin\"]\nurl=git@github.com:a/b.git\nfetch=+refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\nremote=origin\nmerge=refs/heads/main\n[user]\nname=a\n[pager]\nlog=false\n\
            [submodule \"a\"]\nurl=https://x.invalid\nactive=true\n[alias]\nst=!x\n[filter \"lfs\"]\nrequired=true\n\
            [extensions]\nworktreeConfig=true\n[lfs]\nrepositoryformatversion=0\n";
        for setting in parse_config(plain).unwrap() {
            assert!(!setting.runs_program(), "{}", setting.full_name());
        }
    }
}
