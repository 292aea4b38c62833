//! Where logins are kept: one file in the person's configuration folder that nobody else may read.
//!
//! A login belongs to the address of its server, not to its name: a project that calls another server by a known name
//! gets nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_models::http::Url;

use super::grant::Grant;
use crate::files;
use crate::settings::config_folder;
use crate::settings::edit::Change;
use crate::settings::write::{self, Readers};

/// The file.
const FILE: &str = "mcp-logins.json";

/// The key under which they stand.
const LOGINS: &str = "logins";

/// The largest file that is read.
const LARGEST: u64 = 2 << 20;

pub(super) const NOWHERE: &str = "Nobody knows where to keep a login: set HOME.";

/// A person's logins.
#[derive(Debug, Clone)]
pub struct Wallet {
    file: PathBuf,
}

impl Wallet {
    /// The wallet of whoever has this environment.
    pub fn of(env: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self { file: config_folder(env)?.join(FILE) })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The login to a server. What cannot be read is none. Touches the disk.
    pub(super) fn find(&self, server: &Url) -> Option<Grant> {
        let (bytes, _) = files::read(&self.file, LARGEST).ok()?;
        let whole: Value = serde_json::from_slice(&bytes).ok()?;
        serde_json::from_value(whole.get(LOGINS)?.get(key(server))?.clone()).ok()
    }

    /// Keeps a login in place of an older one. Touches the disk.
    pub(super) fn put(&self, server: &Url, grant: &Grant) -> Result<(), String> {
        let value = serde_json::to_value(grant).map_err(|error| error.to_string())?;
        self.change(server, Some(value)).map(drop)
    }

    /// Forgets the login to a server; false if there was none. Touches the disk.
    pub fn forget(&self, server: &str) -> Result<bool, String> {
        let server = Url::parse(server).map_err(|error| format!("`url`: {error}."))?;
        match files::kind(&self.file) {
            Ok(files::Kind::Missing) => Ok(false),
            _ => self.change(&server, None),
        }
    }

    fn change(&self, server: &Url, value: Option<Value>) -> Result<bool, String> {
        let change = Change::Entry { path: vec![LOGINS.into(), key(server)], value };
        let changed = write::change(&self.file, Readers::Person, &change);
        changed.map(|replaced| replaced.is_some()).map_err(|error| error.to_string())
    }

    /// The same beside the async threads.
    pub(super) async fn found(&self, server: &Url) -> io::Result<Option<Grant>> {
        let (wallet, server) = (self.clone(), server.clone());
        files::aside(move || wallet.find(&server)).await
    }
}

/// The address without what a browser would keep to itself.
fn key(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_login_belongs_to_an_address_and_is_for_nobody_else() {
        let home = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), home.path().to_str().unwrap().to_owned())]);
        let wallet = Wallet::of(&env).unwrap();
        assert_eq!(wallet.forget("https://x.test/mcp"), Ok(false));
        assert!(!home.path().join(".claude").exists(), "nothing is made only to say nothing");
        let grant: Grant = serde_json::from_value(json!({
            "accessToken": "t", "tokenEndpoint": "https://id.test/token", "resource": "https://x.test/mcp",
            "client": {"id": "c", "secret": {"header": "s"}},
        }))
        .unwrap();
        wallet.put(&url("https://x.test/mcp#top"), &grant).unwrap();
        let mode = wallet.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(wallet.find(&url("https://x.test/mcp")) == Some(grant));
        assert!(wallet.find(&url("https://x.test/other")).is_none());
        assert_eq!(wallet.forget("https://x.test/mcp"), Ok(true));
        assert_eq!(wallet.forget("https://x.test/mcp"), Ok(false));
        assert!(wallet.find(&url("https://x.test/mcp")).is_none());
        std::fs::write(wallet.file(), "{").unwrap();
        assert!(wallet.find(&url("https://x.test/mcp")).is_none(), "what cannot be read is no login");
        assert!(wallet.put(&url("https://x.test/mcp"), &serde_json::from_value::<Grant>(json!({
            "accessToken": "t", "tokenEndpoint": "https://id.test/token", "resource": "r", "client": {"id": "c"},
        })).unwrap()).unwrap_err().contains("mcp-logins.json"), "and is not overwritten");
    }
}
