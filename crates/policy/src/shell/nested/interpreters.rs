//! Shells and interpreters.

/// Shells that run the text after `-c`, or their input.
pub(crate) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish"];

/// Programs that run code.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "tclsh",
    "osascript",
    "pwsh",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "ed",
    "ex",
    "vim",
    "vi",
    "make",
    "bc",
    "dc",
    "irb",
    "expect",
];

/// Returns true if the program runs code from its input.
pub(crate) fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name) || (INTERPRETERS.contains(&name) && name != "make") || name.starts_with("python")
}
