//! Is this base64, and of what?
//!
//! As Go's decoder takes it: the standard alphabet, padded, line breaks passed over.

/// The bytes, or `None` where it is no base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().filter(|it| !matches!(it, b'\r' | b'\n')).collect::<Vec<_>>();
    let padding = digits.iter().rev().take_while(|it| **it == b'=').count();
    if padding > 2 || !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in &digits[..digits.len() - padding] {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.extend((bits >> count).to_be_bytes().last());
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648, with padding and without line breaks, as EC2 wants it.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// The same in lines of 76, as MIME has it.
pub(crate) fn encode_lines(bytes: &[u8]) -> String {
    // Three bytes are four digits, so each line ends between two groups.
    let lines: Vec<String> = bytes.chunks(57).map(encode).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, encode_lines};

    #[test]
    fn only_padded_standard_base64_is_taken() {
        assert_eq!(decode("Y2EtYnVuZGxlCg==").as_deref(), Some(&b"ca-bundle\n"[..]));
        assert_eq!(decode("//8=").as_deref(), Some(&[255, 255][..]));
        assert_eq!(decode("YW\nJj").as_deref(), Some(&b"abc"[..]));
        for text in ["a", "ca-bundle", "YWJ", "Y===", "====", "Y2E=Y2E=", "ü"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn base64_goes_both_ways() {
        for length in 0..200_u8 {
            let bytes: Vec<u8> = (0..length).map(|it| it.wrapping_mul(167)).collect();
            let lines = encode_lines(&bytes);
            assert!(lines.lines().all(|it| it.len() <= 76) && !lines.ends_with('\n'));
            assert_eq!(lines.replace('\n', ""), encode(&bytes));
            assert_eq!(decode(&lines), Some(bytes));
        }
    }

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn text_is_encoded_as_the_standard_says() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), encoded);
        }
        assert_eq!(encode(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
