//! Robustness: arbitrary text causes no panic and no hang, and hides no command.

use proptest::prelude::*;

use super::*;

#[test]
fn large_and_deep_texts_are_searched() {
    let rows = [
        "a ".repeat(50_000),
        "true; ".repeat(16_000),
        "$(id) ".repeat(16_000),
        "echo $(id) ".repeat(9_000),
        "$(".repeat(50_000),
        "(".repeat(100_000),
        "((".repeat(20) + ";" + &"))".repeat(20),
        "{ ".repeat(50_000),
        "{".repeat(100_000),
        "{a,b}".repeat(20_000),
        "{a,".repeat(30_000),
        "`".repeat(100_001),
        "\\`".repeat(50_000),
        "\"".repeat(100_001),
        "$((".repeat(30_000),
        "$(( ".repeat(40) + "1" + &" ) )".repeat(40),
        "${a:-".repeat(20_000),
        "if ".repeat(30_000),
        "a=1 ".repeat(25_000),
        "x=1; $x a; ".repeat(9_000),
        "sudo ".repeat(20_000),
        "sudo -Z ".repeat(12_000),
        "nice ".repeat(20_000) + "rm x",
        "find . ".to_owned() + &"-exec ".repeat(16_000),
        "find . ".to_owned() + &"-exec rm ; ".repeat(9_000),
        "sh -c ".repeat(16_000),
        "eval ".repeat(20_000),
        "trap ".repeat(20_000),
        "env -S ".repeat(14_000),
        "a | ".repeat(25_000) + "sh",
        "echo rm | sh; ".repeat(7_000),
        "cat <<E\n$(id)\nE\n".repeat(6_000),
        "cat <<E ".repeat(12_000),
        "for x in a; do ".repeat(6_000),
        "case x in x) ".repeat(7_000),
        "[[ ".repeat(30_000),
        "f() ".repeat(20_000),
        "a\\\n".repeat(30_000),
        "rm ".repeat(33_000),
        "~99999999999999999999/x ".repeat(4_000),
        "xargs ".repeat(16_000),
        "* ".repeat(50_000),
        "git -C x ".repeat(11_000),
        "> f ".repeat(25_000),
        "sed s/a/b/".repeat(10_000),
        "for x in a b c d e f g h i j k l m n o p q r s t u v w x y z; do ".to_owned()
            + &"$x; ".repeat(20_000)
            + "done",
    ];
    for row in rows {
        for text in [format!("{row}; git clean -fd"), format!("git clean -fd; {row}")] {
            let analysis = analyze_text(&text);
            let start: String = text.chars().take(40).collect();
            assert!(is_found(&analysis, "git clean -fd"), "{start}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_analyzed(text in "\\PC*") {
        let _ = analyze_text(&text);
    }

    #[test]
    fn any_mix_of_syntax_is_analyzed(pieces in prop::collection::vec(prop::sample::select(vec![
        "ls", " ", "\n", ";", "&", "&&", "|", "(", ")", "{", "}", "$(", "`", "'", "\"", "\\", "$", "${", "}", "<", ">", "<<E",
        "E\n", "<<<", "$((", "))", "[[", "]]", "if", "then", "fi", "for x in", "do", "done", "case", "in", "esac", "x=", "=(",
        "~", "*", "#", "!", "time", "sh -c", "eval", "sudo", "$'", "é", "{a,b}", "function", "coproc", ";;", "2>&1", "%", "é",
    ]), 0..40)) {
        let _ = analyze_text(&pieces.concat());
    }
}
