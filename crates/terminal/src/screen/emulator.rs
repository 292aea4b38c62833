//! Two terminal emulators for tests, because each has its own errors.

use std::num::NonZeroU16;

use super::Size;

pub(crate) enum Emulator {
    Vt100(Box<vt100::Parser>),
    Avt(Box<avt::Terminal>),
}

fn dimension(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).unwrap()
}

impl Emulator {
    pub(crate) fn both(size: Size) -> [Self; 2] {
        let vt100 = vt100::Parser::new(dimension(size.rows), dimension(size.columns), 100_000);
        let avt = avt::Terminal::with_scrollback(size.columns.into(), size.rows.into(), None).unwrap();
        [Self::Vt100(Box::new(vt100)), Self::Avt(Box::new(avt))]
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Vt100(emulator) => emulator.process(bytes),
            Self::Avt(emulator) => emulator.feed(std::str::from_utf8(bytes).unwrap()),
        }
    }

    /// The emulator that reflows.
    pub(crate) fn resize(&mut self, size: Size) {
        match self {
            Self::Vt100(emulator) => {
                emulator.screen_mut().set_size(dimension(size.rows), dimension(size.columns));
            }
            Self::Avt(emulator) => emulator.resize(size.columns.into(), size.rows.into()),
        }
    }

    /// Rows of the scrollback and of the screen, without blanks at their ends.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let trimmed = |row: &str| row.trim_end().to_owned();
        match self {
            Self::Vt100(emulator) => {
                let columns = emulator.screen().size().1.get();
                let hidden = emulator.screen().scrollback_len();
                let mut rows = Vec::new();
                for above in (1..=hidden).rev() {
                    emulator.screen_mut().set_scrollback(above);
                    rows.extend(emulator.screen().rows(0, columns).next());
                }
                emulator.screen_mut().set_scrollback(0);
                rows.extend(emulator.screen().rows(0, columns));
                rows.iter().map(|row| trimmed(row)).collect()
            }
            Self::Avt(emulator) => emulator.screen().all_lines().map(|line| trimmed(&line.text())).collect(),
        }
    }

    /// What is visible, without blanks at the ends of rows.
    pub(crate) fn view(&mut self) -> Vec<String> {
        let height = self.height();
        let rows = self.rows();
        rows[rows.len() - height..].to_vec()
    }

    fn height(&self) -> usize {
        match self {
            Self::Vt100(emulator) => emulator.screen().size().0.get().into(),
            Self::Avt(emulator) => emulator.size().1,
        }
    }

    /// Row and column of the cursor.
    pub(crate) fn cursor(&self) -> (usize, usize) {
        match self {
            Self::Vt100(emulator) => {
                let (row, column) = emulator.screen().cursor_position();
                (row.into(), column.into())
            }
            Self::Avt(emulator) => (emulator.cursor().row, emulator.cursor().col),
        }
    }
}
