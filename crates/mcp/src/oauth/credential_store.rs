//! Stored OAuth tokens: one file in the user's config directory, readable by the user only.
//!
//! Tokens are keyed by server URL, not by server name: a project cannot get a token by giving its server a known name.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_config::settings::config_dir;
use whimbrel_config::settings::{FileOwnership, SettingsChange, change_file};
use whimbrel_models::http::Url;
use whimbrel_os::files;

use super::token::OauthToken;

const FILE_NAME: &str = "mcp-logins.json";

const LOGINS_KEY: &str = "logins";

const MAX_FILE_BYTES: u64 = 2 << 20;

pub(super) const NO_HOME: &str = "There is no directory to store logins in. Set HOME.";

/// OAuth tokens of the user.
#[derive(Debug, Clone)]
pub struct CredentialStore {
    file: PathBuf,
}

impl CredentialStore {
    /// Store in the config directory of this environment; `None` without one.
    pub fn from_env(env: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self { file: config_dir(env)?.join(FILE_NAME) })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Loads the token of a server; an unreadable file counts as none. Reads the disk.
    pub(super) fn load(&self, server: &Url) -> Option<OauthToken> {
        let (bytes, _) = files::read(&self.file, MAX_FILE_BYTES).ok()?;
        let document: Value = serde_json::from_slice(&bytes).ok()?;
        serde_json::from_value(document.get(LOGINS_KEY)?.get(server_key(server))?.clone()).ok()
    }

    /// Stores a token in place of an older one. Writes to the disk.
    pub(super) fn save(&self, server: &Url, token: &OauthToken) -> Result<(), String> {
        let value = serde_json::to_value(token).map_err(|error| error.to_string())?;
        self.update(server, Some(value)).map(drop)
    }

    /// Removes the token of a server; false if there was none. Writes to the disk.
    pub fn remove(&self, server: &str) -> Result<bool, String> {
        let server = Url::parse(server).map_err(|error| format!("`url`: {error}."))?;
        match files::file_kind(&self.file) {
            Ok(files::FileKind::Missing) => Ok(false),
            _ => self.update(&server, None),
        }
    }

    fn update(&self, server: &Url, value: Option<Value>) -> Result<bool, String> {
        let change = SettingsChange::Entry { path: vec![LOGINS_KEY.into(), server_key(server)], value };
        let changed = change_file(&self.file, FileOwnership::User, &change);
        changed.map(|replaced| replaced.is_some()).map_err(|error| error.to_string())
    }

    /// Like [`load`](Self::load), on a blocking thread.
    pub(super) async fn load_async(&self, server: &Url) -> io::Result<Option<OauthToken>> {
        let (store, server) = (self.clone(), server.clone());
        files::run_blocking(move || store.load(&server)).await
    }
}

/// URL without its fragment.
fn server_key(server: &Url) -> String {
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
    fn tokens_belong_to_a_url_and_are_private() {
        let home = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), home.path().to_str().unwrap().to_owned())]);
        let store = CredentialStore::from_env(&env).unwrap();
        assert_eq!(store.remove("https://x.test/mcp"), Ok(false));
        assert!(!home.path().join(".claude").exists(), "removing creates no directory");
        let token: OauthToken = serde_json::from_value(json!({
            "accessToken": "t", "tokenEndpoint": "https://id.test/token", "resource": "https://x.test/mcp",
            "client": {"id": "c", "secret": {"header": "s"}},
        }))
        .unwrap();
        store.save(&url("https://x.test/mcp#top"), &token).unwrap();
        let mode = store.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(store.load(&url("https://x.test/mcp")) == Some(token));
        assert!(store.load(&url("https://x.test/other")).is_none());
        assert_eq!(store.remove("https://x.test/mcp"), Ok(true));
        assert_eq!(store.remove("https://x.test/mcp"), Ok(false));
        assert!(store.load(&url("https://x.test/mcp")).is_none());
        std::fs::write(store.file(), "{").unwrap();
        assert!(store.load(&url("https://x.test/mcp")).is_none(), "an unreadable file counts as no login");
        assert!(store.save(&url("https://x.test/mcp"), &serde_json::from_value::<OauthToken>(json!({
            "accessToken": "t", "tokenEndpoint": "https://id.test/token", "resource": "r", "client": {"id": "c"},
        })).unwrap()).unwrap_err().contains("mcp-logins.json"), "an unreadable file is not overwritten");
    }
}
