//! Environment variables with which programs find the proxy.

use std::ffi::OsString;
use std::path::Path;

use super::credentials::{Token, user_name};
use super::{HostProxy, PORT};

const NO_PROXY: &str = "localhost,127.0.0.1,::1,.localhost";

pub(crate) fn make(
    command: &str,
    token: &Token,
    host_proxy: Option<HostProxy>,
    launcher: &Path,
) -> Vec<(OsString, OsString)> {
    let place = match host_proxy {
        // The caller's own proxy knows no token of ours.
        Some(_) => format!("127.0.0.1:{PORT}"),
        None => format!("{}:{}@127.0.0.1:{PORT}", user_name(command), token.as_str()),
    };
    let has = |port: fn(HostProxy) -> Option<u16>| host_proxy.is_none_or(|proxy| port(proxy).is_some());
    let http_address = format!("http://{place}");
    let socks_address = format!("socks5h://{place}");
    let http = if has(|proxy| proxy.http) { http_address.clone() } else { socks_address.clone() };
    let socks = if has(|proxy| proxy.socks) { socks_address } else { http_address };
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    // Programs differ in which spelling they read.
    let both = [
        ("http_proxy", &http),
        ("https_proxy", &http),
        ("all_proxy", &socks),
        ("no_proxy", &NO_PROXY.to_owned()),
    ];
    for (name, value) in both {
        variables.push((name.into(), value.into()));
        variables.push((name.to_uppercase().into(), value.into()));
    }
    variables.push(("GRPC_PROXY".into(), http.into()));
    variables.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
    if let Some(ssh) = ssh_command(launcher) {
        variables.push(("GIT_SSH_COMMAND".into(), ssh.into()));
    }
    variables
}

/// Returns the ssh that git starts, which connects by means of the launcher. A path that would have to be quoted twice is
/// left out.
fn ssh_command(launcher: &Path) -> Option<String> {
    let path = launcher.to_str().filter(|path| !path.contains(['\'', '"', '$', '`', '\\', '%', '\n']))?;
    Some(format!("ssh -o ProxyCommand=\"'{path}' {} %h %p\"", crate::connect::VERB))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_ssh_are_set() {
        let token = Token::random().unwrap();
        let variables = make("call 1", &token, None, Path::new("/opt/a b/whimbrel"));
        let get = |name: &str| {
            variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        let http = format!("http://call_1:{}@127.0.0.1:{PORT}", token.as_str());
        assert_eq!(get("http_proxy").as_deref(), Some(http.as_str()));
        assert_eq!(get("HTTPS_PROXY").as_deref(), Some(http.as_str()));
        assert!(get("ALL_PROXY").unwrap().starts_with("socks5h://call_1:"));
        let ssh = "ssh -o ProxyCommand=\"'/opt/a b/whimbrel' __sandbox-connect %h %p\"";
        assert_eq!(get("GIT_SSH_COMMAND").as_deref(), Some(ssh));
        assert_eq!(ssh_command(Path::new("/opt/a'b")), None);

        let host_proxy = Some(HostProxy { http: Some(3128), socks: None });
        let variables = make("call", &token, host_proxy, Path::new("/w"));
        let own = format!("http://127.0.0.1:{PORT}");
        let address =
            |name: &str| variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        assert_eq!(
            (address("HTTP_PROXY"), address("ALL_PROXY")),
            (Some(own.clone().into()), Some(own.into()))
        );
    }
}
