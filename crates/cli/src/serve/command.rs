//! Command line of `whimbrel serve`. Pure.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::caller::Caller;
use crate::flags::{self, ParsedArgs};

pub(crate) const HELP_PAGE: &str = "\
Serve sessions to the browser, and to programs over HTTP.

Usage: whimbrel serve [flags]        serve the sessions of this folder; prints a link to open
       whimbrel serve login          print a new link for the host that runs
       whimbrel serve key NAME       print a new key for a program

Flags:
  --listen ADDRESS     address and port to listen on (default 127.0.0.1:7717; port 0: any)
  --data DIR           folder of the database (default ~/.local/share/whimbrel/host)
  --root DIR           sessions may work below this folder; can be repeated (default: this folder)
  --public-url URL     the URL under which a proxy offers the host
  --token-file FILE    file with a key of the owner; written if it is missing
  --config FILE        JSON file with roots and limits
  --drain TIME         time that running turns have when the host stops, such as 30s (default)
  --json               print the ready line as JSON
  --page DIR           serve the page from this folder, while you work on it
Model and permission flags count for all sessions, such as --model and --allowedTools.
";

/// Address without `--listen`.
const DEFAULT_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 7717);

/// What is to be done.
#[derive(Debug)]
pub(crate) enum ServeCommand {
    Help,
    Serve(Box<ServeArgs>),
    Login { data: Option<PathBuf> },
    Key { name: String, data: Option<PathBuf> },
}

/// Arguments of the host.
#[derive(Debug)]
pub(crate) struct ServeArgs {
    pub(crate) listen: SocketAddr,
    pub(crate) data: Option<PathBuf>,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) public_url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) drain: Option<Duration>,
    pub(crate) json: bool,
    pub(crate) page: Option<PathBuf>,
    /// Flags of sessions.
    pub(crate) session: ParsedArgs,
}

/// Own flags that were given, and what is left.
#[derive(Debug, Default)]
struct OwnFlags {
    values: Vec<(&'static str, String)>,
    json: bool,
    help: bool,
    rest: Vec<String>,
}

const VALUE_FLAGS: [&str; 8] =
    ["--listen", "--data", "--root", "--public-url", "--token-file", "--config", "--drain", "--page"];

impl OwnFlags {
    fn parse(argv: &[String]) -> Result<Self, String> {
        let mut own = Self::default();
        let mut words = argv.iter();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            if let Some(flag) = VALUE_FLAGS.into_iter().find(|flag| *flag == name) {
                let value = joined.or_else(|| words.next().cloned());
                own.values.push((flag, value.ok_or_else(|| format!("{flag} needs a value."))?));
            } else if word == "--json" {
                own.json = true;
            } else if matches!(word.as_str(), "--help" | "-h") {
                own.help = true;
            } else {
                own.rest.push(word.clone());
            }
        }
        Ok(own)
    }

    fn last(&self, name: &str) -> Option<String> {
        self.values.iter().rev().find(|(flag, _)| *flag == name).map(|(_, value)| value.clone())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.last(name).map(PathBuf::from)
    }

    /// Fails if more than `--data` was given.
    fn ensure_only_data(&self) -> Result<(), String> {
        match self.values.iter().find(|(flag, _)| *flag != "--data") {
            Some((flag, _)) => Err(format!("{flag} is for the start of the host.")),
            None => Ok(()),
        }
    }
}

/// Parses the arguments after `serve`.
pub(crate) fn parse(argv: &[String]) -> Result<ServeCommand, String> {
    let own = OwnFlags::parse(argv)?;
    if own.help {
        return Ok(ServeCommand::Help);
    }
    match own.rest.as_slice() {
        [word] if word == "login" => {
            own.ensure_only_data()?;
            return Ok(ServeCommand::Login { data: own.path("--data") });
        }
        [word, rest @ ..] if word == "key" => {
            own.ensure_only_data()?;
            let [name] = rest else {
                return Err("Name the key: whimbrel serve key NAME. The name tells keys apart.".into());
            };
            return Ok(ServeCommand::Key { name: name.clone(), data: own.path("--data") });
        }
        [word, ..] if !word.starts_with('-') => {
            return Err(format!("{word:?} is not expected here. See `whimbrel serve --help`."));
        }
        _ => {}
    }
    let listen = match own.last("--listen") {
        Some(text) => text.parse().map_err(|_| {
            format!("--listen {text}: expected an address and a port, such as 127.0.0.1:7717.")
        })?,
        None => SocketAddr::from(DEFAULT_ADDRESS),
    };
    let public_url = own.last("--public-url");
    if let Some(url) = &public_url
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        return Err(format!("--public-url {url}: expected a URL, such as https://agents.example.org."));
    }
    let session =
        flags::parse(&own.rest, Caller::from_entrypoint(None), &|path| std::fs::read_to_string(path))?;
    if session.args.prompt.is_some() {
        return Err("A prompt is not expected here. Send it from the page.".into());
    }
    Ok(ServeCommand::Serve(Box::new(ServeArgs {
        listen,
        data: own.path("--data"),
        roots: own
            .values
            .iter()
            .filter(|(flag, _)| *flag == "--root")
            .map(|(_, value)| value.into())
            .collect(),
        public_url,
        token_file: own.path("--token-file"),
        config: own.path("--config"),
        drain: own.last("--drain").map(|text| parse_time(&text)).transpose()?,
        json: own.json,
        page: own.path("--page"),
        session,
    })))
}

/// A time such as `30s`, `500ms`, `2m`, or seconds.
fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| format!("--drain {text}: expected a time, such as 30s."))?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "" | "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        unit => Err(format!("--drain {text}: the unit {unit} is not ms, s or m.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<ServeCommand, String> {
        parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn own_flags_are_separated_from_those_of_sessions() {
        let ServeCommand::Serve(args) =
            parse_words("--listen 127.0.0.1:0 --root /a --model sonnet --root=/b --json --drain 500ms")
                .unwrap()
        else {
            panic!()
        };
        assert_eq!(args.listen.port(), 0);
        assert_eq!(args.roots, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(args.session.args.options.model.as_deref(), Some("sonnet"));
        assert_eq!((args.json, args.drain), (true, Some(Duration::from_millis(500))));
    }

    #[test]
    fn wrong_arguments_are_refused_with_a_remedy() {
        let rows = [
            "--listen here",
            "--listen",
            "--public-url agents",
            "--drain 3h",
            "logni",
            "key",
            "login --json --root /a",
        ];
        for words in rows {
            assert!(parse_words(words).is_err(), "{words}");
        }
        assert!(
            matches!(parse_words("key laptop").unwrap(), ServeCommand::Key { name, .. } if name == "laptop")
        );
    }
}
