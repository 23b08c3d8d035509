//! The wire format of protocol buffers: tags, varints, lengths. Nothing here allocates.

use crate::Error;

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    StartGroup,
    EndGroup,
    Fixed32,
}

/// What is left of a message.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and how it is written; `None` at the end.
    pub(crate) fn tag(&mut self) -> Result<Option<(u32, Wire)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            3 => Wire::StartGroup,
            4 => Wire::EndGroup,
            5 => Wire::Fixed32,
            _ => return Err(Error::Tag),
        };
        match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => Ok(Some((number, wire))),
            _ => Err(Error::Tag),
        }
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().enumerate().take(10) {
            // The tenth byte has room for one bit.
            if index == 9 && *byte > 1 {
                return Err(Error::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { Error::Truncated } else { Error::Varint })
    }

    pub(crate) fn fixed64(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Bytes after their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.varint()?).map_err(|_| Error::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Steps over a field that is not known.
    pub(crate) fn skip(&mut self, wire: Wire) -> Result<(), Error> {
        // Groups nest; counting them needs no stack.
        let mut groups = 0usize;
        let mut wire = wire;
        loop {
            match wire {
                Wire::Varint => drop(self.varint()?),
                Wire::Fixed64 => drop(self.fixed64()?),
                Wire::Bytes => drop(self.bytes()?),
                Wire::Fixed32 => {
                    self.rest = self.rest.get(4..).ok_or(Error::Truncated)?;
                }
                Wire::StartGroup => groups += 1,
                Wire::EndGroup => groups = groups.checked_sub(1).ok_or(Error::Tag)?,
            }
            if groups == 0 {
                return Ok(());
            }
            wire = self.tag()?.ok_or(Error::Truncated)?.1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints() {
        for (bytes, expected) in [
            (&[0u8][..], Ok(0)),
            (&[0xac, 0x02], Ok(300)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], Err(Error::Varint)),
            (&[0x80; 11], Err(Error::Varint)),
            (&[0x80; 10], Err(Error::Varint)),
            (&[0x80, 0x80], Err(Error::Truncated)),
            (&[], Err(Error::Truncated)),
        ] {
            assert_eq!(Reader::new(bytes).varint(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn tags() {
        assert_eq!(Reader::new(&[0x0a]).tag(), Ok(Some((1, Wire::Bytes))));
        assert_eq!(Reader::new(&[]).tag(), Ok(None));
        for bytes in [&[0x02u8][..], &[0x0e], &[0x0f], &[0x82, 0x80, 0x80, 0x80, 0x80, 0x01]] {
            assert_eq!(Reader::new(bytes).tag(), Err(Error::Tag), "{bytes:?}");
        }
    }

    #[test]
    fn lengths_beyond_the_input_are_truncation() {
        assert_eq!(Reader::new(&[3, 1, 2]).bytes(), Err(Error::Truncated));
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];
        assert_eq!(Reader::new(&huge).bytes(), Err(Error::Truncated));
    }

    #[test]
    fn unknown_fields_are_stepped_over() {
        // A group that holds a varint and another group, then a varint of field 1.
        let mut reader = Reader::new(&[0x13, 0x08, 0x01, 0x1b, 0x1c, 0x14, 0x08, 0x05]);
        let (number, wire) = reader.tag().unwrap().unwrap();
        assert_eq!(number, 2);
        reader.skip(wire).unwrap();
        assert_eq!(reader.tag(), Ok(Some((1, Wire::Varint))));
        assert_eq!(reader.varint(), Ok(5));
        assert!(reader.is_empty());

        let nested = vec![0x13; 1 << 20];
        let mut reader = Reader::new(&nested);
        let (_, wire) = reader.tag().unwrap().unwrap();
        assert_eq!(reader.skip(wire), Err(Error::Truncated));
        assert_eq!(Reader::new(&[]).skip(Wire::EndGroup), Err(Error::Tag));
    }
}
