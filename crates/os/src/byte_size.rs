//! Numbers of bytes as text for the user and the model.

/// Formats a number of bytes in the unit that fits, by powers of 1000.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        // From here on it would be rounded to 1000.0 MB.
        1_000_000..999_950_000 => format!("{} MB", with_one_decimal(bytes, 1_000_000)),
        _ => format!("{} GB", with_one_decimal(bytes, 1_000_000_000)),
    }
}

/// Divides by a unit and rounds to one decimal.
fn with_one_decimal(bytes: u64, unit: u64) -> String {
    let tenths = bytes.saturating_add(unit / 20) / (unit / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_fitting_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (999_999, "999 kB"),
            (1_000_000, "1.0 MB"),
            (2_345_678, "2.3 MB"),
            (33_554_432, "33.6 MB"),
            (999_949_999, "999.9 MB"),
            (999_950_000, "1.0 GB"),
            (3_000_000_000, "3.0 GB"),
            (u64::MAX, "18446744073.7 GB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
