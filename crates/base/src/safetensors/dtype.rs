//! The types of elements.

use serde::Deserialize;

macro_rules! dtypes {
    ($($name:ident $bits:literal,)*) => {
        /// A type of elements, by its name in the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, missing_docs,
                reason = "the format's own names")]
        pub enum Dtype {
            $($name,)*
        }

        impl Dtype {
            pub const ALL: &[Dtype] = &[$(Dtype::$name,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Dtype::$name => stringify!($name),)*
                }
            }

            pub fn bits(self) -> u64 {
                match self {
                    $(Dtype::$name => $bits,)*
                }
            }
        }
    };
}

// Source: huggingface/safetensors 0.8, `Dtype`.
dtypes! {
    BOOL 8,
    U8 8,
    I8 8,
    U16 16,
    I16 16,
    U32 32,
    I32 32,
    U64 64,
    I64 64,
    F4 4,
    F6_E2M3 6,
    F6_E3M2 6,
    F8_E4M3 8,
    F8_E4M3FNUZ 8,
    F8_E5M2 8,
    F8_E5M2FNUZ 8,
    F8_E8M0 8,
    F16 16,
    BF16 16,
    F32 32,
    F64 64,
    C64 64,
}
