//! Testing agents: a model that says what a script tells it to, a mock of the model APIs that fails on demand, a host that
//! cannot hang, and scenarios that every form of the engine must play alike.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use serde_json::json;
//! use whimbrel_testkit::{Host, Reply};
//! use whimbrel_wire::permission::PermissionResult;
//!
//! let script = [Reply::tool("Bash", json!({"command": "rm notes.txt"})), Reply::text("I may not.")];
//! let mut host = Host::with(script)
//!     .file("notes.txt", "keep me")
//!     .can_use_tool(|ask| PermissionResult::deny(format!("{} is not for you", ask.tool_name)))
//!     .start()
//!     .await
//!     .unwrap();
//! let result = host.run("Tidy up.").await.unwrap();
//! assert_eq!(result.result.as_deref(), Some("I may not."));
//! assert!(host.asked()[1].says("Bash is not for you"));
//! assert!(host.stage().files().unwrap().contains_key("notes.txt"));
//! # })
//! ```
//!
//! The rooms:
//! - [`script`]: what the model says, as values
//! - [`http_mock`]: a model API on loopback that plays a script; [`scripted`]: the same without a network
//! - [`guarded`]: an MCP server behind a login
//! - [`host`]: a small host that starts an engine on a script and talks to it
//! - [`scenario`]: a folder with a story and with what must come of it, played in process and as a program
//! - [`drill`]: a program that is killed again and again
//! - [`store_contract`]: what every session store must do
//! - [`stage`]: folders and environment of one run; [`pattern`]: "a frame like this"; [`mod@normal`]: what is left of a
//!   run when everything that differs from run to run is taken out

#![deny(missing_docs)]

mod api_format;
pub mod kill_test;
pub mod oauth_mock;
pub mod host;
pub mod http_mock;
pub mod normalize;
pub mod pattern;
pub mod scenario;
pub mod script;
pub mod scripted_model;
pub mod test_dirs;
pub mod store_contract;

pub use kill_test::KillTest;
pub use oauth_mock::OauthMock;
pub use host::{HostResponse, EngineExit, Host, HostBuilder};
pub use http_mock::{MockApi, RecordedRequest};
pub use scenario::{ScenarioRun, Scenario, assert_same};
pub use script::{ModelRequest, Fault, Reply, Script};
pub use test_dirs::TestDirs;
