//! Builds an entry of an MCP configuration file from command-line arguments. Pure.

use serde_json::{Map, Value, json};

/// Transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerTransport {
    Stdio,
    Http,
    Sse,
}

impl ServerTransport {
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let all = [Self::Stdio, Self::Http, Self::Sse];
        let found = all.into_iter().find(|transport| transport.as_str() == word);
        found.ok_or_else(|| format!("{word:?} is not a transport. The transports are stdio, http and sse."))
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Arguments that describe a server.
pub(super) struct ServerArgs {
    pub(super) transport: Option<ServerTransport>,
    /// `KEY=VALUE` each.
    pub(super) env: Vec<String>,
    /// `Name: value` each.
    pub(super) headers: Vec<String>,
    /// OAuth client id.
    pub(super) client_id: Option<String>,
    /// Port of the OAuth callback.
    pub(super) callback_port: Option<String>,
    /// A command with its arguments, or a URL.
    pub(super) target: Vec<String>,
}

/// Builds the entry of a server. A single URL means HTTP, unless a transport was given.
pub(super) fn from_args(args: ServerArgs) -> Result<Value, String> {
    let is_address = |word: &String| word.starts_with("http://") || word.starts_with("https://");
    let guessed = match args.target.as_slice() {
        [word] if is_address(word) => ServerTransport::Http,
        _ => ServerTransport::Stdio,
    };
    let transport = args.transport.unwrap_or(guessed);
    let Some((first, rest)) = args.target.split_first() else {
        return Err("The server has no address: pass a URL, or -- and a command.".into());
    };
    let mut entry = Map::from_iter([("type".to_owned(), json!(transport.as_str()))]);
    match transport {
        ServerTransport::Stdio => {
            if !args.headers.is_empty() {
                return Err("A program takes no HTTP headers. Remove -H, or pass a URL.".into());
            }
            if args.client_id.is_some() || args.callback_port.is_some() {
                return Err(
                    "A program does not use OAuth. Remove --client-id and --callback-port, or pass a \
                    URL."
                        .into(),
                );
            }
            entry.insert("command".into(), json!(first));
            if !rest.is_empty() {
                entry.insert("args".into(), json!(rest));
            }
            insert_pairs(&mut entry, "env", &args.env, '=', "-e takes KEY=VALUE")?;
        }
        ServerTransport::Http | ServerTransport::Sse => {
            if !args.env.is_empty() {
                return Err("A server with a URL has no environment. Remove -e, or use -H.".into());
            }
            if let Some(word) = rest.first() {
                return Err(format!("A server with a URL takes no arguments, but {word:?} was given."));
            }
            entry.insert("url".into(), json!(first));
            insert_pairs(&mut entry, "headers", &args.headers, ':', "-H takes 'Name: value'")?;
            let oauth = oauth_fields(args.client_id, args.callback_port.as_deref())?;
            if !oauth.is_empty() {
                entry.insert("oauth".into(), Value::Object(oauth));
            }
        }
    }
    Ok(Value::Object(entry))
}

fn oauth_fields(client_id: Option<String>, port: Option<&str>) -> Result<Map<String, Value>, String> {
    let mut oauth = Map::new();
    if let Some(id) = client_id {
        oauth.insert("clientId".into(), id.into());
    }
    if let Some(port) = port {
        let number = port.parse::<u16>().ok().filter(|port| *port > 0);
        let number =
            number.ok_or_else(|| format!("--callback-port takes a number up to 65535, not {port:?}."))?;
        oauth.insert("callbackPort".into(), number.into());
    }
    Ok(oauth)
}

/// Parses an entry from JSON.
pub(super) fn from_json(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(entry @ Value::Object(_)) => Ok(entry),
        Ok(_) => {
            Err("The entry is not an object. Write {\"command\": \"...\"} or {\"type\": \"http\", \"url\": \
            \"...\"}."
                .into())
        }
        Err(error) => Err(format!("The entry is not valid JSON: {error}.")),
    }
}

fn insert_pairs(
    entry: &mut Map<String, Value>,
    key: &str,
    pairs: &[String],
    separator: char,
    expected: &str,
) -> Result<(), String> {
    let mut fields = Map::new();
    for pair in pairs {
        let (name, value) = pair.split_once(separator).ok_or_else(|| format!("{expected}, not {pair:?}."))?;
        // Blanks belong to the value of a variable, but not to that of a header.
        let value = if separator == ':' { value.trim() } else { value };
        fields.insert(name.trim().to_owned(), value.into());
    }
    if !fields.is_empty() {
        entry.insert(key.into(), Value::Object(fields));
    }
    Ok(())
}
