//! The subcommands of this program, one row each. Completions, the man page and `docs/command-line.md` are made from it.

use crate::value_hint::ValueHint;

/// A subcommand.
#[derive(Debug)]
pub(crate) struct Subcommand {
    /// The first argument.
    pub(crate) name: &'static str,
    /// Arguments, as documentation shows them.
    pub(crate) arguments: &'static str,
    /// Its purpose.
    pub(crate) meaning: &'static str,
    /// Page in `docs/` with more, and the text of a link to it.
    #[cfg_attr(not(test), expect(dead_code, reason = "only docs/command-line.md has links"))]
    pub(crate) page: Option<(&'static str, &'static str)>,
    /// Commands of one or two words that follow the name, without abbreviations.
    pub(crate) commands: &'static [&'static str],
    /// Those commands whose argument is a path.
    pub(crate) path_commands: &'static [&'static str],
    /// Its own flags.
    pub(crate) flags: &'static [SubcommandFlag],
    /// Whether it takes the flags of a session too.
    pub(crate) session_flags: SessionFlags,
}

/// A flag of a subcommand.
#[derive(Debug)]
pub(crate) struct SubcommandFlag {
    /// All spellings, with dashes.
    pub(crate) spellings: &'static [&'static str],
    /// Suggestions for its value; none for a switch.
    pub(crate) value: Option<ValueHint>,
}

/// Whether a subcommand takes the flags of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFlags {
    Accepted,
    Rejected,
}

const JSON: SubcommandFlag = SubcommandFlag { spellings: &["--json"], value: None };
const SCOPE: SubcommandFlag = SubcommandFlag {
    spellings: &["-s", "--scope"],
    value: Some(ValueHint::Words(&["user", "project", "local"])),
};

const fn switch(spellings: &'static [&'static str]) -> SubcommandFlag {
    SubcommandFlag { spellings, value: None }
}

const fn valued(spellings: &'static [&'static str], value: ValueHint) -> SubcommandFlag {
    SubcommandFlag { spellings, value: Some(value) }
}

/// A subcommand without commands, flags and page.
const fn plain(name: &'static str, meaning: &'static str) -> Subcommand {
    Subcommand {
        name,
        arguments: "",
        meaning,
        page: None,
        commands: &[],
        path_commands: &[],
        flags: &[],
        session_flags: SessionFlags::Rejected,
    }
}

/// The subcommands, in the order of the documentation.
pub(crate) const SUBCOMMANDS: &[Subcommand] = &[
    plain("demo", "run a scripted session that needs no key and no network"),
    Subcommand {
        arguments: "explain 'TOOL(..)' [--mode MODE] [--json]",
        page: Some(("permissions", "permissions.md")),
        commands: &["explain"],
        flags: &[
            valued(
                &["--mode"],
                ValueHint::Words(&["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]),
            ),
            JSON,
        ],
        session_flags: SessionFlags::Accepted,
        ..plain("permissions", "show the decision for a tool call and the rule behind it")
    },
    Subcommand {
        arguments: "[login|key NAME] ..",
        page: Some(("sessions in the browser", "host.md")),
        commands: &["login", "key"],
        flags: &[
            valued(&["--listen"], ValueHint::Any),
            valued(&["--data"], ValueHint::File),
            valued(&["--root"], ValueHint::File),
            valued(&["--public-url"], ValueHint::Any),
            valued(&["--token-file"], ValueHint::File),
            valued(&["--config"], ValueHint::File),
            valued(&["--drain"], ValueHint::Any),
            valued(&["--page"], ValueHint::File),
            JSON,
        ],
        session_flags: SessionFlags::Accepted,
        ..plain("serve", "serve sessions to the browser, and to programs over HTTP")
    },
    Subcommand {
        arguments: "..",
        page: Some(("sessions", "sessions.md")),
        commands: &["list", "show", "search", "export", "rename", "tag", "fork", "delete"],
        flags: &[
            switch(&["--here"]),
            valued(&["--limit"], ValueHint::Any),
            JSON,
            valued(&["--format"], ValueHint::Words(&["md", "json"])),
            valued(&["-o", "--output"], ValueHint::File),
            switch(&["--clear"]),
            valued(&["--at"], ValueHint::Any),
            valued(&["--title"], ValueHint::Any),
            switch(&["-y", "--yes"]),
        ],
        ..plain("sessions", "list, read, search, export and edit stored sessions")
    },
    Subcommand {
        arguments: "..",
        page: Some(("MCP servers", "mcp.md")),
        commands: &["list", "get", "test", "add", "add-json", "remove", "login", "logout", "serve"],
        flags: &[
            SCOPE,
            valued(&["-t", "--transport"], ValueHint::Words(&["stdio", "http", "sse"])),
            valued(&["-e", "--env"], ValueHint::Any),
            valued(&["-H", "--header"], ValueHint::Any),
            valued(&["--client-id"], ValueHint::Any),
            valued(&["--callback-port"], ValueHint::Any),
            JSON,
            switch(&["-l", "--long"]),
        ],
        ..plain("mcp", "manage MCP servers, or serve the built-in tools as one")
    },
    Subcommand {
        arguments: "..",
        page: Some(("plugins", "extending.md#plugins")),
        commands: &[
            "marketplace add",
            "marketplace list",
            "marketplace update",
            "marketplace remove",
            "install",
            "uninstall",
            "enable",
            "disable",
            "update",
            "list",
            "validate",
        ],
        path_commands: &["marketplace add", "validate"],
        flags: &[SCOPE, JSON, switch(&["--available"])],
        ..plain("plugin", "add marketplaces and install plugins from them")
    },
    Subcommand {
        arguments: "..",
        page: Some(("settings", "settings.md")),
        commands: &["list", "get", "set", "remove"],
        flags: &[SCOPE, JSON],
        ..plain("config", "list, get, set and remove settings in their files")
    },
    Subcommand {
        page: Some(("agents", "agents.md")),
        commands: &["list"],
        flags: &[JSON],
        session_flags: SessionFlags::Accepted,
        ..plain("agents", "list agent definitions with source and model")
    },
    Subcommand {
        flags: &[JSON],
        session_flags: SessionFlags::Accepted,
        ..plain("doctor", "check the setup, and say what is wrong")
    },
    Subcommand {
        arguments: "status",
        commands: &["status"],
        flags: &[JSON, switch(&["--text"])],
        session_flags: SessionFlags::Accepted,
        ..plain("auth", "say whether there is a key for the model, and where it comes from")
    },
    Subcommand {
        arguments: "status|run ..",
        page: Some(("sandbox", "sandbox.md")),
        commands: &["status", "run"],
        flags: &[
            JSON,
            valued(&["--write"], ValueHint::File),
            valued(&["--deny-write"], ValueHint::File),
            valued(&["--deny-read"], ValueHint::File),
            valued(&["--allow-read"], ValueHint::File),
            valued(&["--allow-host"], ValueHint::Any),
            valued(&["--deny-host"], ValueHint::Any),
            switch(&["--local-sockets"]),
            switch(&["--nested-namespaces"]),
            valued(&["--tier"], ValueHint::Words(&["namespaces", "bwrap", "machine-proc"])),
        ],
        ..plain("sandbox", "say what this machine can confine, or run a confined command")
    },
    Subcommand {
        page: Some(("editors", "editors.md")),
        ..plain("acp", "serve an editor over the Agent Client Protocol")
    },
    Subcommand {
        arguments: "[--json]",
        page: Some(("hosts of the Kimi Agent SDK", "kimi.md")),
        flags: &[JSON],
        ..plain("info", "print the versions that hosts of the Kimi Agent SDK ask for")
    },
    Subcommand {
        arguments: "bash|zsh|fish",
        page: Some(("installation", "install.md#completions-and-the-man-page")),
        commands: &["bash", "zsh", "fish"],
        ..plain("completions", "print the completions for a shell")
    },
    plain("man", "print the man page"),
    plain("help", "the same as `--help`"),
    plain("version", "the same as `--version`"),
];

/// Returns whether a word is a subcommand of this program.
pub(crate) fn is_own_subcommand(word: &str) -> bool {
    SUBCOMMANDS.iter().any(|subcommand| subcommand.name == word)
}
