//! `whimbrel plugin`: marketplaces, installed plugins, and sessions that load them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{RunOutput, TestDir, run_command, wait_until};

/// A home and a working directory, with files of marketplaces beside them.
struct Shop {
    dir: TestDir,
}

impl Shop {
    fn new() -> Self {
        Self { dir: TestDir::new() }
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.dir.work_dir()).unwrap().join("..").canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a marketplace with this list of plugins.
    fn write_marketplace(&self, dir: &str, name: &str, plugins: &Value) {
        let text = json!({"name": name, "owner": {"name": "Ann"}, "plugins": plugins}).to_string();
        self.write(&format!("{dir}/.claude-plugin/marketplace.json"), &text);
    }

    /// Writes a plugin with a command and a version.
    fn write_plugin(&self, dir: &str, name: &str, version: &str) {
        let manifest = json!({"name": name, "version": version}).to_string();
        self.write(&format!("{dir}/.claude-plugin/plugin.json"), &manifest);
        self.write(&format!("{dir}/commands/go.md"), &format!("Go with {version}."));
    }

    /// The marketplace `shop` with the plugin `fmt`.
    fn write_shop(&self) {
        self.write_plugin("shop/plugins/fmt", "fmt", "1.0.0");
        self.write_marketplace(
            "shop",
            "shop",
            &json!([{"name": "fmt", "source": "./plugins/fmt", "description": "Formats."}]),
        );
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        self.dir.run(&[&["plugin"], args].concat(), "")
    }

    /// Runs a subcommand that succeeds. Returns its stdout.
    fn ok(&self, args: &[&str]) -> String {
        let RunOutput { code, stdout, stderr } = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        stdout
    }

    /// Runs a subcommand that fails. Returns its stderr.
    fn fail(&self, args: &[&str]) -> String {
        let RunOutput { code, stdout, stderr } = self.run(args);
        assert_eq!(code, Some(1), "{args:?}: {stdout}{stderr}");
        stderr
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(path)).unwrap()).unwrap()
    }

    /// The plugins that a session lists, by name and version, and its other output.
    fn session(&self, flags: &[&str]) -> (Vec<(String, String)>, String) {
        let mut session = self.dir.start_session(&json!(["done"]), flags);
        session.send_prompt("go");
        let (code, frames, stderr) = session.finish();
        assert_eq!(code, Some(0), "{stderr}");
        let init = frames.iter().find(|frame| frame["subtype"] == "init").unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let plugins = init["plugins"].as_array().unwrap().iter();
        let plugins = plugins.map(|plugin| (text(&plugin["name"]), text(&plugin["version"])));
        (plugins.collect(), Value::from(frames.clone()).to_string() + &stderr)
    }

    /// Trusts the working directory.
    fn trust_project(&self) {
        let trusted =
            json!({"projects": {self.path("work").to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        self.write("home/.claude.json", &trusted.to_string());
    }

    /// Makes a directory a repository with one more commit. Returns the commit.
    fn commit(&self, dir: &str) -> String {
        let dir = self.path(dir);
        if !dir.join(".git").exists() {
            git(&dir, &["init", "-q", "-b", "main"]);
        }
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "-m", "x"]);
        git(&dir, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn url(&self, dir: &str) -> String {
        format!("file://{}", self.path(dir).display())
    }

    /// Names in the plugin directory that are not there for users.
    fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("home/.claude/plugins")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".whimbrel-")).collect()
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].iter().flat_map(|role| {
            [(format!("GIT_{role}_NAME"), "a"), (format!("GIT_{role}_EMAIL"), "a@example.com")]
        }))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const FMT: [(&str, &str); 1] = [("fmt", "1.0.0")];

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
}

#[test]
fn plugin_of_a_directory_is_installed_loaded_and_removed() {
    let shop = Shop::new();
    shop.write_shop();
    assert!(shop.ok(&["marketplace", "add", "../shop"]).contains("Added the marketplace shop with 1 plugin"));
    let source = json!({"source": "directory", "path": shop.path("shop")});
    let known = shop.json("home/.claude/plugins/known_marketplaces.json");
    assert_eq!(
        (&known["shop"]["source"], &known["shop"]["installLocation"]),
        (&source, &json!(shop.path("shop")))
    );
    assert_eq!(
        shop.json("home/.claude/settings.json"),
        json!({"extraKnownMarketplaces": {"shop": {"source": source}}})
    );
    assert!(shop.ok(&["list", "--available"]).contains("fmt@shop  Formats."));

    assert!(shop.ok(&["install", "fmt"]).contains("fmt@shop is installed and enabled (user, version 1.0.0)"));
    let path = shop.path("home/.claude/plugins/cache/shop/fmt/1.0.0");
    let records = shop.json("home/.claude/plugins/installed_plugins.json");
    let record = &records["plugins"]["fmt@shop"][0];
    assert_eq!(
        (&records["version"], &record["scope"], &record["version"]),
        (&json!(2), &json!("user"), &json!("1.0.0"))
    );
    assert_eq!(record["installPath"], json!(path));
    assert_eq!(shop.json("home/.claude/settings.json")["enabledPlugins"], json!({"fmt@shop": true}));
    let listed: Value = serde_json::from_str(&shop.ok(&["list", "--json"])).unwrap();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["enabled"], &listed[0]["installPath"]),
        (&json!("fmt@shop"), &json!(true), &json!(path))
    );
    let (plugins, output) = shop.session(&[]);
    assert_eq!(plugins, pairs(&FMT));
    assert!(output.contains("\"fmt:go\""), "{output}");
    assert!(shop.ok(&["install", "fmt@shop"]).contains("is already installed"));

    // What is installed does not change with the marketplace.
    shop.write(
        "shop/plugins/fmt/hooks/hooks.json",
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "touch trace"}]}]}).to_string(),
    );
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
    assert!(!shop.path("work/trace").exists());

    shop.ok(&["disable", "fmt"]);
    assert_eq!(shop.session(&[]).0, []);
    assert!(shop.fail(&["disable", "fmt"]).contains("already disabled"));
    assert!(shop.ok(&["list"]).contains("disabled"));
    shop.ok(&["enable", "fmt@shop"]);
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
    assert_eq!(shop.session(&["--setting-sources", ""]).0, [], "without the settings of the user");

    shop.ok(&["uninstall", "fmt"]);
    assert!(!path.exists() && shop.path("shop/plugins/fmt").exists());
    assert_eq!(shop.json("home/.claude/settings.json")["enabledPlugins"], json!({}));
    assert_eq!(shop.session(&[]).0, []);
    assert!(shop.fail(&["uninstall", "fmt"]).contains("not installed here"));
    shop.ok(&["install", "fmt@shop"]);
    assert!(shop.ok(&["marketplace", "remove", "shop"]).contains("uninstalled fmt@shop"));
    assert!(!path.exists() && shop.path("shop").exists(), "a directory of the user is never removed");
    assert!(shop.ok(&["marketplace", "list"]).contains("There are no marketplaces"));
    assert_eq!(shop.leftovers(), Vec::<String>::new());
}

#[test]
fn repository_is_fetched_and_updated() {
    let shop = Shop::new();
    shop.write_shop();
    shop.write_plugin("tool", "tool", "3.0.0");
    let pinned = shop.commit("tool");
    shop.write("tool/commands/new.md", "New");
    shop.commit("tool");
    shop.write("mono/deep/sub/commands/go.md", "Go");
    let sub = shop.commit("mono");
    shop.write_marketplace("shop", "shop", &json!([
        {"name": "fmt", "source": "./plugins/fmt"},
        {"name": "tool", "source": {"source": "url", "url": shop.url("tool"), "sha": pinned}},
        {"name": "sub", "source": {"source": "git-subdir", "url": shop.url("mono"), "path": "deep/sub", "ref": "main"}},
        {"name": "pack", "source": {"source": "npm", "package": "x"}},
    ]));
    let first = shop.commit("shop");
    shop.ok(&["marketplace", "add", &format!("{}#main", shop.url("shop"))]);
    let listed: Value = serde_json::from_str(&shop.ok(&["marketplace", "list", "--json"])).unwrap();
    let location = shop.path("home/.claude/plugins/marketplaces/shop");
    assert_eq!(
        listed,
        json!([{"name": "shop", "source": "git", "url": shop.url("shop"), "ref": "main",
        "installLocation": location}])
    );
    for name in ["fmt", "tool", "sub"] {
        shop.ok(&["install", &format!("{name}@shop")]);
    }
    assert!(shop.fail(&["install", "pack@shop"]).contains("\"npm\", which is not supported"));
    assert!(shop.fail(&["install", "nope@shop"]).contains("It offers: fmt, tool, sub, pack"));
    let record =
        |id: &str| shop.json("home/.claude/plugins/installed_plugins.json")["plugins"][id][0].clone();
    assert_eq!(record("fmt@shop")["gitCommitSha"], json!(first));
    assert_eq!(record("tool@shop")["gitCommitSha"], json!(pinned));
    let cache = shop.path("home/.claude/plugins/cache/shop");
    assert!(!cache.join("tool/3.0.0/commands/new.md").exists(), "the pinned commit is installed");
    assert!(!cache.join("tool/3.0.0/.git").exists());
    assert_eq!(record("sub@shop")["version"], json!(sub[..12]));
    assert_eq!(shop.session(&[]).0, pairs(&[("fmt", "1.0.0"), ("tool", "3.0.0"), ("sub", &sub[..12])]));

    assert!(shop.ok(&["update", "fmt"]).contains("is up to date"));
    shop.write_plugin("shop/plugins/fmt", "fmt", "2.0.0");
    shop.commit("shop");
    assert!(shop.ok(&["update", "fmt@shop"]).contains("fmt@shop is updated (version 2.0.0)"));
    assert!(cache.join("fmt/2.0.0").exists() && !cache.join("fmt/1.0.0").exists());
    assert!(shop.ok(&["marketplace", "update"]).contains("Updated shop."));
    // If the repository cannot be reached, what is there is used.
    fs::rename(shop.path("shop"), shop.path("moved")).unwrap();
    shop.ok(&["uninstall", "fmt"]);
    let output = shop.run(&["install", "fmt@shop"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("The marketplace shop was not updated: git clone failed"), "{output:?}");
    assert_eq!(shop.leftovers(), Vec::<String>::new());
}

#[test]
fn github_repository_runs_neither_hooks_nor_filters() {
    let shop = Shop::new();
    shop.write_shop();
    shop.write("shop/.gitattributes", "*.md filter=trace\n");
    shop.commit("shop");
    fs::create_dir_all(shop.path("hub/acme")).unwrap();
    git(&shop.path(""), &["clone", "-q", "--bare", "shop", "hub/acme/shop.git"]);
    let trace = |name: &str| format!("sh -c 'touch {} && cat'", shop.path(name).display());
    shop.write(
        "template/hooks/post-checkout",
        &format!("#!/bin/sh\ntouch {}\n", shop.path("hook").display()),
    );
    fs::set_permissions(shop.path("template/hooks/post-checkout"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let config = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = https://github.com/\n[init]\n\ttemplateDir = {}\n[filter \"trace\"]\n\tsmudge = {}\n\trequired = true\n[core]\n\thooksPath = {}\n",
        shop.path("hub").display(),
        shop.path("template").display(),
        trace("filter"),
        shop.path("template/hooks").display(),
    );
    shop.write("home/.gitconfig", &config);
    shop.ok(&["marketplace", "add", "acme/shop"]);
    shop.ok(&["install", "fmt@shop"]);
    let known = shop.json("home/.claude/plugins/known_marketplaces.json");
    assert_eq!(known["shop"]["source"], json!({"source": "github", "repo": "acme/shop"}));
    assert_eq!((shop.path("hook").exists(), shop.path("filter").exists()), (false, false));
    // The settings of the test would run them.
    let checkout = Command::new("git")
        .args(["clone", "-q", "https://github.com/acme/shop", "copy"])
        .current_dir(shop.path(""))
        .env("HOME", shop.path("home"))
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(checkout.status.success(), "{checkout:?}");
    assert_eq!((shop.path("hook").exists(), shop.path("filter").exists()), (true, true));
}

#[test]
fn untrusted_project_loads_and_installs_nothing() {
    let shop = Shop::new();
    shop.write_shop();
    let settings = json!({"enabledPlugins": {"fmt@shop": true},
        "extraKnownMarketplaces": {"shop": {"source": {"source": "directory", "path": "../shop"}}}});
    shop.write("work/.claude/settings.json", &settings.to_string());
    assert!(shop.fail(&["install", "fmt@shop"]).contains("There is no marketplace \"shop\""));
    assert!(!shop.path("home/.claude/plugins/cache").exists());
    shop.ok(&["marketplace", "add", "../shop"]);
    shop.ok(&["install", "fmt@shop", "--scope", "user"]);
    shop.ok(&["disable", "fmt@shop", "--scope", "user"]);
    let (plugins, output) = shop.session(&[]);
    assert_eq!(plugins, [], "an installed plugin is not enabled by the project");
    assert!(output.contains("not trusted") && output.contains("enabledPlugins"), "{output}");
    shop.trust_project();
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
}

#[test]
fn trusted_project_names_marketplace_and_plugins() {
    let shop = Shop::new();
    shop.write_shop();
    let settings = json!({"enabledPlugins": {"fmt@shop": true},
        "extraKnownMarketplaces": {"shop": {"source": {"source": "directory", "path": "../shop"}}}});
    shop.write("work/.claude/settings.json", &settings.to_string());
    shop.trust_project();
    let (plugins, output) = shop.session(&[]);
    assert_eq!(plugins, [], "a session installs nothing");
    assert!(output.contains("whimbrel plugin install fmt@shop"), "{output}");
    assert!(shop.ok(&["marketplace", "list"]).contains("not added yet"));
    assert!(shop.ok(&["list"]).contains("not installed: whimbrel plugin install fmt@shop"));
    shop.ok(&["install", "fmt@shop", "--scope", "project"]);
    let record = shop.json("home/.claude/plugins/installed_plugins.json")["plugins"]["fmt@shop"][0].clone();
    assert_eq!((&record["scope"], &record["projectPath"]), (&json!("project"), &json!(shop.path("work"))));
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
    assert_eq!(shop.json("work/.claude/settings.json"), settings, "nothing is to be changed");
    assert!(shop.fail(&["uninstall", "fmt", "--scope", "user"]).contains("not installed in the user scope"));
    shop.ok(&["disable", "fmt", "--scope", "local"]);
    assert_eq!(shop.session(&[]).0, [], "the user switches it off for himself");
}

#[test]
fn local_installation_counts_in_an_untrusted_project() {
    let shop = Shop::new();
    shop.write_shop();
    shop.ok(&["marketplace", "add", "../shop", "--scope", "local"]);
    shop.ok(&["install", "fmt@shop", "--scope", "local"]);
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
    let project = shop.run(&["marketplace", "add", "../shop", "--scope", "project"]);
    assert!(project.stderr.contains("has no effect in this directory yet"), "{project:?}");
}

#[test]
fn unsafe_plugins_and_marketplaces_are_refused() {
    let shop = Shop::new();
    shop.write("secret", "x");
    for (name, plugins) in
        [("claude-plugins-official", json!([])), ("../up", json!([])), ("inline", json!([]))]
    {
        shop.write_marketplace("bad", name, &plugins);
        let stderr = shop.fail(&["marketplace", "add", "../bad"]);
        assert!(stderr.contains("reserved") || stderr.contains("not valid"), "{name}: {stderr}");
    }
    shop.write_plugin("shop/link", "link", "1");
    symlink(shop.path("secret"), shop.path("shop/link/commands/secret.md")).unwrap();
    symlink(shop.path("home"), shop.path("shop/out")).unwrap();
    shop.write("shop/broken/.claude-plugin/plugin.json", "{");
    shop.write_marketplace(
        "shop",
        "shop",
        &json!([
            {"name": "link", "source": "./link"},
            {"name": "out", "source": "./out"},
            {"name": "up", "source": "../secret"},
            {"name": "../up", "source": "./link"},
            {"name": "broken", "source": "./broken"},
            {"name": "helper", "source": {"source": "url", "url": "ext::sh -c touch% trace"}},
        ]),
    );
    let added = shop.run(&["marketplace", "add", "../shop"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    for cause in ["must begin with ./", "\"../up\" is not valid", "not a git URL"] {
        assert!(added.stderr.contains(cause), "{cause}: {added:?}");
    }
    for (plugin, cause) in [
        ("link@shop", "outside the plugin"),
        ("out@shop", "not a directory inside the marketplace"),
        ("broken@shop", "not valid JSON"),
        ("up@shop", "does not offer"),
        ("../x@shop", "not valid"),
        ("x@../shop", "not valid"),
    ] {
        let stderr = shop.fail(&["install", plugin]);
        assert!(stderr.contains(cause), "{plugin}: {stderr}");
    }
    assert!(!shop.path("home/.claude/plugins/cache").exists() && shop.leftovers().is_empty());
    assert_eq!(shop.json("home/.claude/settings.json").get("enabledPlugins"), None);
}

#[test]
fn failures_of_git_are_explained() {
    let shop = Shop::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/shop.git", listener.local_addr().unwrap());
    let empty = shop.path("empty");
    fs::create_dir(&empty).unwrap();
    for (url, variable, cause) in [
        ("http://127.0.0.1:1/shop.git", ("UNUSED", "1".to_owned()), "Git clone failed"),
        (
            silent.as_str(),
            ("CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS", "300".to_owned()),
            "took longer than 0.3 seconds",
        ),
        (silent.as_str(), ("CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS", "soon".to_owned()), "must be a whole number"),
        ("https://x.test/shop.git", ("PATH", empty.display().to_string()), "Git was not found. Install git"),
    ] {
        let mut command = shop.dir.command(&["plugin", "marketplace", "add", url]);
        command.env(variable.0, variable.1);
        let output = run_command(command, "");
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(cause), "{cause}: {output:?}");
    }
    assert!(!shop.path("home/.claude/plugins/known_marketplaces.json").exists());
}

#[test]
fn killed_update_keeps_the_old_marketplace() {
    let shop = Shop::new();
    shop.write_shop();
    shop.commit("shop");
    shop.ok(&["marketplace", "add", &shop.url("shop")]);
    // From now on the repository does not answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config =
        format!("[url \"http://{}/\"]\n\tinsteadOf = {}\n", listener.local_addr().unwrap(), shop.url("shop"));
    shop.write("home/.gitconfig", &config);
    let mut child = shop.dir.command(&["plugin", "marketplace", "update"]).spawn().unwrap();
    wait_until("the fetch", || (!shop.leftovers().is_empty()).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(shop.path("home/.gitconfig")).unwrap();
    drop(listener);
    assert!(shop.ok(&["list", "--available"]).contains("fmt@shop"));
    shop.ok(&["install", "fmt@shop"]);
    assert_eq!(shop.leftovers(), Vec::<String>::new());
    assert_eq!(shop.session(&[]).0, pairs(&FMT));
}

#[test]
fn processes_that_install_at_once_do_not_lose_records() {
    let shop = Shop::new();
    let names: Vec<String> = (0..4).map(|number| format!("plug{number}")).collect();
    for name in &names {
        shop.write_plugin(&format!("shop/{name}"), name, "1");
    }
    let entries: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "source": format!("./{name}")})).collect();
    shop.write_marketplace("shop", "shop", &entries.into());
    shop.ok(&["marketplace", "add", "../shop"]);
    let other = json!({"scope": "project", "projectPath": "/elsewhere", "installPath": "/x", "version": "7", "isLocal": true});
    let records = json!({"version": 2, "plugins": {"plug0@shop": [other]}, "note": 1});
    shop.write("home/.claude/plugins/installed_plugins.json", &records.to_string());
    let children: Vec<_> = names
        .iter()
        .map(|name| shop.dir.command(&["plugin", "install", &format!("{name}@shop")]).spawn().unwrap())
        .collect();
    for mut child in children {
        assert_eq!(crate::harness::wait_for_exit(&mut child).code(), Some(0));
    }
    let stored = shop.json("home/.claude/plugins/installed_plugins.json");
    assert_eq!((stored["plugins"].as_object().unwrap().len(), &stored["note"]), (4, &json!(1)));
    assert_eq!(stored["plugins"]["plug0@shop"][0], other, "records of other programs stay");
    assert_eq!(shop.session(&[]).0.len(), 4);
}

#[test]
fn marketplace_file_is_downloaded() {
    let shop = Shop::new();
    shop.write_plugin("tool", "tool", "3.0.0");
    shop.commit("tool");
    let file = json!({"name": "web", "plugins": [
        {"name": "tool", "source": {"source": "url", "url": shop.url("tool")}},
        {"name": "local", "source": "./local"},
    ]})
    .to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/marketplace.json", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 2048];
            let _ = stream.read(&mut request);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
            let _ = stream.write_all((head + &file).as_bytes());
        }
    });
    shop.ok(&["marketplace", "add", &url]);
    shop.ok(&["install", "tool@web"]);
    assert_eq!(shop.session(&[]).0, pairs(&[("tool", "3.0.0")]));
    assert!(shop.fail(&["install", "local@web"]).contains("only a file on a web server"));
    let known = shop.json("home/.claude/plugins/known_marketplaces.json");
    assert_eq!(known["web"]["source"], json!({"source": "url", "url": url}));
    assert!(shop.fail(&["marketplace", "add", "http://127.0.0.1:1/m.json"]).contains("Cannot download"));
}

#[test]
fn plugins_and_marketplaces_are_validated() {
    let shop = Shop::new();
    shop.write_shop();
    assert!(shop.ok(&["validate", "../shop"]).contains(": valid"));
    assert!(shop.ok(&["validate", "../shop/plugins/fmt"]).contains(": valid"));
    shop.write_marketplace("shop", "shop", &json!([{"name": "fmt", "source": "./nowhere"}]));
    let RunOutput { code, stdout, .. } = shop.run(&["validate", "../shop", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["success"]), (Some(1), &json!(false)), "{report}");
    assert!(report["errors"][0].as_str().unwrap().contains("does not exist"), "{report}");
}

#[test]
fn running_session_loads_new_plugins_on_request() {
    let shop = Shop::new();
    shop.write_shop();
    shop.ok(&["marketplace", "add", "../shop"]);
    let mut session = shop.dir.start_session(&json!(["one", "two"]), &[]);
    session.send_prompt("go");
    assert_eq!(session.next_frame("init")["plugins"], json!([]));
    session.next_frame("result");
    shop.ok(&["install", "fmt@shop"]);
    let request =
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "reload_plugins"}});
    session.write(format!("{request}\n").as_bytes());
    let reply = session.next_frame("control_response");
    assert_eq!(reply["response"]["response"]["plugins"][0]["name"], "fmt", "{reply}");
    assert_eq!(session.finish().0, Some(0));
}
