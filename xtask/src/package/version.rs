//! Versions of a release in the forms of the package managers. Pure.

use anyhow::{Context, Result, bail};

/// Returns the form of Python (PEP 440): `0.2.0-rc.1` is `0.2.0rc1`.
pub(super) fn to_python(version: &str) -> Result<String> {
    let Some((release, suffix)) = version.split_once('-') else { return Ok(version.to_owned()) };
    let (stage, number) = suffix.split_once('.').unwrap_or((suffix, "0"));
    let stage = match stage {
        "alpha" => "a",
        "beta" => "b",
        "rc" => "rc",
        _ => bail!("{version}: Python packages know the stages alpha, beta and rc only; rename the stage"),
    };
    let number: u32 = number.parse().with_context(|| format!("{version}: no number after the stage"))?;
    Ok(format!("{release}{stage}{number}"))
}

/// Returns the form of Debian, in which a tilde sorts before the end: `0.2.0-rc.1` is `0.2.0~rc.1`.
pub(super) fn to_debian(version: &str) -> String {
    version.replacen('-', "~", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_take_the_form_of_each_package_manager() {
        for (version, python, debian) in [
            ("0.1.0", "0.1.0", "0.1.0"),
            ("1.2.3-rc.1", "1.2.3rc1", "1.2.3~rc.1"),
            ("1.0.0-alpha", "1.0.0a0", "1.0.0~alpha"),
            ("1.0.0-beta.12", "1.0.0b12", "1.0.0~beta.12"),
        ] {
            assert_eq!((to_python(version).unwrap().as_str(), to_debian(version).as_str()), (python, debian));
        }
        assert!(to_python("1.0.0-nightly.1").is_err());
        assert!(to_python("1.0.0-rc.one").is_err());
    }
}
