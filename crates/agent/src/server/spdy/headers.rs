//! Blocks of headers as SPDY packs them: pairs of names and values in one zlib stream per direction, which begins
//! with a dictionary both sides know.
//!
//! A block never unpacks to more than a bound, however small it came.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::SpdyError;

/// More headers than people have to say are an attack.
const LARGEST_BLOCK: usize = 64 << 10;
const MOST_HEADERS: usize = 256;

/// The first part of the dictionary: each word comes with its length.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug \
Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch\
charset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

fn dictionary() -> Vec<u8> {
    let mut all = Vec::new();
    for word in WORDS {
        put_text(&mut all, word);
    }
    all.extend_from_slice(TEXT.as_bytes());
    all
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(text.as_bytes());
}

pub(super) type Headers = Vec<(String, String)>;

/// Packs the headers we send.
pub(super) struct Packer {
    stream: Compress,
}

impl Packer {
    pub(super) fn new() -> Result<Self, SpdyError> {
        let mut stream = Compress::new(Compression::fast(), true);
        stream
            .set_dictionary(&dictionary())
            .map_err(|error| SpdyError::Headers(error.to_string()))?;
        Ok(Self { stream })
    }

    pub(super) fn pack(&mut self, headers: &[(&str, &str)]) -> Result<Vec<u8>, SpdyError> {
        let mut plain = u32::try_from(headers.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes()
            .to_vec();
        for (name, value) in headers {
            put_text(&mut plain, name);
            put_text(&mut plain, value);
        }
        let mut packed = Vec::with_capacity(plain.len() + 64);
        let begun = self.stream.total_in();
        loop {
            let taken = usize::try_from(self.stream.total_in() - begun).unwrap_or(plain.len());
            let room = packed.capacity() - packed.len();
            let made = self
                .stream
                .compress_vec(&plain[taken..], &mut packed, FlushCompress::Sync);
            made.map_err(|error| SpdyError::Headers(error.to_string()))?;
            // Room that was left means that all was flushed.
            if room > 0 && packed.len() < packed.capacity() {
                return Ok(packed);
            }
            packed.reserve(256);
        }
    }
}

/// Unpacks the headers we are sent.
pub(super) struct Unpacker {
    stream: Decompress,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Self {
            stream: Decompress::new(true),
        }
    }

    pub(super) fn unpack(&mut self, packed: &[u8]) -> Result<Headers, SpdyError> {
        let mut plain = Vec::with_capacity(1024);
        let begun = self.stream.total_in();
        loop {
            let taken = usize::try_from(self.stream.total_in() - begun).unwrap_or(packed.len());
            let before = (self.stream.total_in(), plain.len());
            match self
                .stream
                .decompress_vec(&packed[taken..], &mut plain, FlushDecompress::Sync)
            {
                Ok(Status::StreamEnd) => {
                    return Err(SpdyError::Headers("the stream of headers ended".to_owned()));
                }
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    let set = self.stream.set_dictionary(&dictionary());
                    set.map_err(|error| SpdyError::Headers(error.to_string()))?;
                    continue;
                }
                Err(error) => return Err(SpdyError::Headers(error.to_string())),
            }
            let is_stuck = before == (self.stream.total_in(), plain.len());
            let all_taken = self.stream.total_in() - begun == packed.len() as u64;
            if plain.len() > LARGEST_BLOCK {
                return Err(SpdyError::Headers("too many headers".to_owned()));
            }
            if all_taken && plain.len() < plain.capacity() {
                return parse(&plain);
            }
            if is_stuck && plain.len() < plain.capacity() {
                return Err(SpdyError::Headers("headers that never end".to_owned()));
            }
            plain.reserve(4096);
        }
    }
}

fn parse(mut plain: &[u8]) -> Result<Headers, SpdyError> {
    let cut = || SpdyError::Headers("headers that are cut off".to_owned());
    let number = |plain: &mut &[u8]| -> Result<usize, SpdyError> {
        let (first, rest) = plain.split_first_chunk::<4>().ok_or_else(cut)?;
        *plain = rest;
        Ok(u32::from_be_bytes(*first) as usize)
    };
    let count = number(&mut plain)?;
    if count > MOST_HEADERS {
        return Err(SpdyError::Headers("too many headers".to_owned()));
    }
    let mut headers = Headers::new();
    for _ in 0..count {
        let mut pair = [String::new(), String::new()];
        for text in &mut pair {
            let length = number(&mut plain)?;
            let bytes = plain.get(..length).ok_or_else(cut)?;
            *text = String::from_utf8_lossy(bytes).into_owned();
            plain = &plain[length..];
        }
        let [name, value] = pair;
        headers.push((name.to_lowercase(), value));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_is_the_one_all_know() {
        let all = dictionary();
        assert_eq!(all.len(), 1423);
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in all {
            low = (low + u32::from(byte)) % 65521;
            high = (high + low) % 65521;
        }
        assert_eq!(high << 16 | low, 0xe3c6_a7c2);
    }

    #[test]
    fn headers_survive_packing_block_after_block() {
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new());
        let long = "x".repeat(5000);
        for value in ["data", long.as_str(), "", "data"] {
            let block = packer
                .pack(&[("streamType", value), ("port", "80")])
                .unwrap();
            let headers = unpacker.unpack(&block).unwrap();
            assert_eq!(
                headers,
                [
                    ("streamtype".to_owned(), value.to_owned()),
                    ("port".to_owned(), "80".to_owned())
                ]
            );
        }
    }

    #[test]
    fn nonsense_and_bombs_are_refused() {
        assert!(Unpacker::new().unpack(b"nonsense").is_err());
        assert!(Unpacker::new().unpack(&[]).is_err());
        let bomb = "y".repeat(LARGEST_BLOCK * 2);
        let packed = Packer::new().unwrap().pack(&[("a", &bomb)]).unwrap();
        assert!(packed.len() < LARGEST_BLOCK);
        assert!(Unpacker::new().unpack(&packed).is_err());
        for bad in [
            &[0, 0, 0, 1][..],
            &[0, 0, 0, 1, 0, 0, 0, 9, b'a'],
            &[0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(parse(bad).is_err());
        }
    }
}
