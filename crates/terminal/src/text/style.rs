//! How a piece of text looks.

/// A color as the program asks for it; the screen reduces it to what the terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 16 colors that the terminal's palette defines.
    Ansi(u8),
    /// One of the 256 colors of the fixed palette.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// Colors and attributes of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) foreground: Color,
    pub(crate) background: Color,
    attributes: u8,
}

/// Attributes in the order of their bits, each with its SGR parameter.
const ATTRIBUTES: [(u8, u8); 6] =
    [(BOLD, 1), (DIM, 2), (ITALIC, 3), (UNDERLINED, 4), (REVERSED, 7), (STRUCK, 9)];
const BOLD: u8 = 1;
const DIM: u8 = 1 << 1;
const ITALIC: u8 = 1 << 2;
const UNDERLINED: u8 = 1 << 3;
const REVERSED: u8 = 1 << 4;
const STRUCK: u8 = 1 << 5;

impl Style {
    pub(crate) const PLAIN: Self =
        Self { foreground: Color::Default, background: Color::Default, attributes: 0 };

    pub(crate) const fn fg(self, color: Color) -> Self {
        Self { foreground: color, ..self }
    }

    pub(crate) const fn bg(self, color: Color) -> Self {
        Self { background: color, ..self }
    }

    pub(crate) const fn bold(self) -> Self {
        self.with(BOLD)
    }

    pub(crate) const fn dim(self) -> Self {
        self.with(DIM)
    }

    pub(crate) const fn italic(self) -> Self {
        self.with(ITALIC)
    }

    pub(crate) const fn underlined(self) -> Self {
        self.with(UNDERLINED)
    }

    pub(crate) const fn reversed(self) -> Self {
        self.with(REVERSED)
    }

    pub(crate) const fn struck(self) -> Self {
        self.with(STRUCK)
    }

    const fn with(self, attribute: u8) -> Self {
        Self { attributes: self.attributes | attribute, ..self }
    }

    /// This style over another one: what it does not set comes from `base`.
    pub(crate) fn over(self, base: Self) -> Self {
        let color = |own, below| if own == Color::Default { below } else { own };
        Self {
            foreground: color(self.foreground, base.foreground),
            background: color(self.background, base.background),
            attributes: self.attributes | base.attributes,
        }
    }

    /// SGR parameters of the attributes.
    pub(crate) fn attribute_parameters(self) -> impl Iterator<Item = u8> {
        ATTRIBUTES
            .into_iter()
            .filter(move |(bit, _)| self.attributes & bit != 0)
            .map(|(_, parameter)| parameter)
    }
}
