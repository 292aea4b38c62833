//! Enums that are a list of names on the wire: one row per name gives serde, `Display` and `FromStr`.

/// Error: a name that is not on the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`; expected one of: {known}")]
pub struct UnknownNameError {
    /// Category of the name, such as `permission mode`.
    pub what: &'static str,
    /// The name that was given.
    pub given: String,
    /// The names on the list.
    pub known: String,
}

/// Defines a closed enum from a list of names. The first name of a row is written, the others are accepted as aliases.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident: $what:literal {
            $($(#[$note:meta])* $variant:ident = $name:literal $(| $alias:literal)*,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $type {
            $($(#[$note])* #[serde(rename = $name $(, alias = $alias)*)] $variant,)*
        }

        impl $type {
            /// Every value, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::names::UnknownNameError;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name $(| $alias)* => Ok(Self::$variant),)*
                    _ => Err($crate::names::UnknownNameError {
                        what: $what,
                        given: name.into(),
                        known: [$($name,)*].join(", "),
                    }),
                }
            }
        }
    };
}

pub(crate) use named;
