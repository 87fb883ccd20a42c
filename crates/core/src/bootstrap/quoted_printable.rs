//! What does a body say that is quoted-printable?
//!
//! `=3D` is a byte, and a line that ends in `=` goes on in the next. Blanks at the end of a line are the
//! road's, not the text's. As Go and Python take it, but for what they would guess at.

/// The bytes, or `None` where a `=` is followed by something else.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let ending = &line[content.len()..];
        let content = content.trim_end_matches([' ', '\t']);
        let (content, ending) = match content.strip_suffix('=') {
            Some(continued) => (continued, ""),
            None => (content, ending),
        };
        let mut rest = content.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'=' {
                bytes.push(byte);
                continue;
            }
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        }
        bytes.extend(ending.bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes_and_soft_breaks_are_undone() {
        let read = |text| decode(text).map(|it| String::from_utf8(it).unwrap());
        assert_eq!(read("a=3Db\nlong =\nline  \r\n=C3=A4").as_deref(), Some("a=b\nlong line\r\nä"));
        assert_eq!(read("plain").as_deref(), Some("plain"));
        for text in ["=", "a=\n", ""] {
            assert!(decode(text).is_some(), "{text:?}");
        }
        for text in ["=3", "=zz", "a = b"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
