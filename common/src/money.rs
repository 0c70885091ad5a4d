//! Amounts of money as integers: what a price is and how it is read and shown, and what a number of things at a price
//! comes to. No floating point comes near it. What a request used is not this file's matter.

use std::fmt;
use std::str::FromStr;

/// Decimals of a price.
const DECIMALS: usize = 6;
/// Micro-USD in one USD.
const MICRO: u64 = 1_000_000;
/// The largest price: a million USD per million tokens. It keeps weighted sums far from overflow.
const MAX_MICRO: u64 = 1_000_000 * MICRO;

/// Micro-USD per million tokens, or per unit where something else than tokens is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Price(u64);

/// Decimals of an amount.
const AMOUNT_DECIMALS: usize = 12;
/// Pico-USD in one USD.
const PICO: u64 = 1_000_000_000_000;

/// Pico-USD: a price of micro-USD per million tokens times tokens, so that nothing is ever rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Amount(u64);

/// Why a text is no price. The texts follow a path, and do not repeat the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PriceFault {
    /// Not digits with at most one point among them.
    #[error("must be a plain decimal number of USD, such as \"2.50\"")]
    NotDecimal,
    /// Below zero.
    #[error("must not be negative")]
    Negative,
    /// More decimals than are kept.
    #[error("is too precise: at most {DECIMALS} decimals are kept")]
    TooPrecise,
    /// Above the largest price.
    #[error("is too large: at most {}", MAX_MICRO / MICRO)]
    TooLarge,
}

impl Price {
    /// Nothing.
    pub const ZERO: Price = Price(0);

    /// A price of so many micro-USD; none above the largest price.
    pub fn from_micro(micro: u64) -> Option<Self> {
        (micro <= MAX_MICRO).then_some(Price(micro))
    }

    /// Micro-USD per million tokens.
    pub fn micro(self) -> u64 {
        self.0
    }

    /// What so many tokens come to; none above 18 million USD.
    pub fn of_tokens(self, tokens: u64) -> Option<Amount> {
        self.0.checked_mul(tokens).map(Amount)
    }

    /// What so many units come to, each of which has this price; none above 18 million USD.
    pub fn of_units(self, units: u64) -> Option<Amount> {
        self.of_tokens(units.checked_mul(PICO / MICRO)?)
    }
}

impl Amount {
    /// So many pico-USD.
    pub fn from_pico(pico: u64) -> Self {
        Amount(pico)
    }

    /// Pico-USD.
    pub fn pico(self) -> u64 {
        self.0
    }

    /// The sum of both; none above 18 million USD.
    pub fn plus(self, other: Amount) -> Option<Amount> {
        self.0.checked_add(other.0).map(Amount)
    }
}

impl FromStr for Price {
    type Err = PriceFault;

    fn from_str(text: &str) -> Result<Self, PriceFault> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(decimals) {
            return Err(PriceFault::NotDecimal);
        }
        if is_negative {
            return Err(PriceFault::Negative);
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > DECIMALS {
            return Err(PriceFault::TooPrecise);
        }
        let micro: u64 = format!("{decimals:0<DECIMALS$}").parse().map_err(|_| PriceFault::NotDecimal)?;
        // Only digits are left, so a number that does not fit is too large.
        let whole: u64 = whole.parse().map_err(|_| PriceFault::TooLarge)?;
        let sum = whole.checked_mul(MICRO).and_then(|w| w.checked_add(micro)).ok_or(PriceFault::TooLarge)?;
        Price::from_micro(sum).ok_or(PriceFault::TooLarge)
    }
}

/// USD with two decimals, or as many as there are: `2.00`, `0.075`.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0 / MICRO, self.0 % MICRO, DECIMALS, f)
    }
}

/// As a price: `0.00`, `0.000123`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0 / PICO, self.0 % PICO, AMOUNT_DECIMALS, f)
    }
}

fn show(usd: u64, parts: u64, places: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let decimals = format!("{parts:0places$}");
    let kept = decimals.trim_end_matches('0').len().max(2);
    write!(f, "{usd}.{}", &decimals[..kept])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_price_is_read_exactly_and_shown_in_usd() {
        let table = [
            ("2", 2_000_000, "2.00"),
            ("2.00", 2_000_000, "2.00"),
            ("2.5", 2_500_000, "2.50"),
            ("0.075", 75_000, "0.075"),
            ("0.000001", 1, "0.000001"),
            ("1.50000000000", 1_500_000, "1.50"),
            ("007", 7_000_000, "7.00"),
            ("0", 0, "0.00"),
            ("1000000", MAX_MICRO, "1000000.00"),
        ];
        for (text, micro, shown) in table {
            let price: Price = text.parse().unwrap();
            assert_eq!((price.micro(), price.to_string().as_str()), (micro, shown), "{text}");
        }
    }

    #[test]
    fn an_amount_is_exact_whatever_the_price_and_the_number() {
        let price: Price = "2.50".parse().unwrap();
        for (amount, shown) in [
            (price.of_tokens(1_000_000), "2.50"),
            (price.of_tokens(1), "0.0000025"),
            (Price(1).of_tokens(1), "0.000000000001"),
            (price.of_units(3), "7.50"),
            (price.of_tokens(0), "0.00"),
            (price.of_tokens(1).and_then(|one| one.plus(price.of_units(1)?)), "2.5000025"),
        ] {
            assert_eq!(amount.unwrap().to_string(), shown);
        }
        assert_eq!(Price(MAX_MICRO).of_tokens(u64::MAX), None);
        assert_eq!(Price(MAX_MICRO).of_units(u64::MAX), None);
        assert_eq!(Amount(u64::MAX).plus(Amount(1)), None);
    }

    #[test]
    fn what_is_no_price_is_refused_with_the_reason() {
        use PriceFault::{Negative, NotDecimal, TooLarge, TooPrecise};
        let table = [
            ("", NotDecimal),
            ("abc", NotDecimal),
            ("$2", NotDecimal),
            ("2,50", NotDecimal),
            ("1e-3", NotDecimal),
            (".5", NotDecimal),
            ("5.", NotDecimal),
            ("1.2.3", NotDecimal),
            (" 2", NotDecimal),
            ("nan", NotDecimal),
            ("-", NotDecimal),
            ("0x10", NotDecimal),
            ("-1", Negative),
            ("-0.5", Negative),
            ("0.0000001", TooPrecise),
            ("1000000.000001", TooLarge),
            ("99999999999999999999999", TooLarge),
        ];
        for (text, fault) in table {
            assert_eq!(text.parse::<Price>(), Err(fault), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(micro in 0..=MAX_MICRO) {
            let price = Price::from_micro(micro).unwrap();
            prop_assert_eq!(price.to_string().parse(), Ok(price));
        }
    }
}
