//! The launcher of confined commands, for programs whose own file cannot be it. It is not started by hand.

fn main() {
    #[cfg(target_os = "linux")]
    whimbrel_sandbox::launcher::run_if_requested();
    std::process::exit(2);
}
