//! Pictures of pixels: PNG in a data URI, so that the page stands alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use windrow::{Error, Result};

/// Colours from low to high that grow evenly brighter, for any eye, in light and in dark.
pub(crate) const VIRIDIS: [u32; 10] =
    [0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725];
/// Colours from low to high, beginning with black.
pub(crate) const MAGMA: [u32; 10] =
    [0x000004, 0x180f3d, 0x440f76, 0x721f81, 0x9e2f7f, 0xcd4071, 0xf1605d, 0xfd9668, 0xfeca8d, 0xfcfdbf];
/// A colour that none of them is close to.
const OUTSIDE: [u8; 3] = [0xff, 0x1f, 0x4b];

/// Pixels row by row, from the upper left: each a level from 0 to [`Picture::TOP`], or [`Picture::OUTSIDE`].
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) colours: &'static [u32; 10],
    pub(crate) levels: Vec<u8>,
}

impl Picture {
    /// The highest level.
    pub(crate) const TOP: u8 = 254;
    /// No level: what should not be.
    pub(crate) const OUTSIDE: u8 = 255;

    /// The level of a share from 0 to 1.
    pub(crate) fn level(share: f64) -> u8 {
        (share.clamp(0.0, 1.0) * f64::from(Picture::TOP)).round() as u8
    }

    pub(crate) fn height(&self) -> usize {
        self.levels.len() / self.width.max(1)
    }

    /// `data:image/png;base64,…`.
    ///
    /// # Errors
    /// `Unsupported` for a picture without pixels.
    pub(crate) fn data_uri(&self) -> Result<String> {
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, self.width as u32, self.height() as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(self.palette());
        encoder
            .write_header()
            .and_then(|mut writer| {
                writer.write_image_data(&self.levels)?;
                writer.finish()
            })
            .map_err(|e| Error::unsupported("the picture cannot be encoded").caused_by(e))?;
        Ok(data_uri("image/png", &png))
    }

    fn palette(&self) -> Vec<u8> {
        let colour = |level: u8| -> [u8; 3] {
            if level == Picture::OUTSIDE {
                return OUTSIDE;
            }
            let place = f64::from(level) / f64::from(Picture::TOP) * (self.colours.len() - 1) as f64;
            let (below, above) = (self.colours[place.floor() as usize], self.colours[place.ceil() as usize]);
            [16, 8, 0].map(|shift| {
                let part = |colour: u32| f64::from((colour >> shift) & 0xff);
                (part(below) + (part(above) - part(below)) * place.fract()).round() as u8
            })
        };
        (0..=u8::MAX).flat_map(colour).collect()
    }
}

/// Bytes as an address that holds them.
pub(crate) fn data_uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_the_png_of_its_levels() {
        let levels = vec![0, Picture::TOP, Picture::OUTSIDE, 127, 0, 0];
        let picture = Picture { width: 3, colours: &MAGMA, levels: levels.clone() };
        let uri = picture.data_uri().unwrap();
        let bytes = STANDARD.decode(uri.strip_prefix("data:image/png;base64,").unwrap()).unwrap();
        let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, pixels), (3, 2, levels));
        let palette = reader.info().palette.clone().unwrap();
        assert_eq!(
            (&palette[..3], &palette[254 * 3..]),
            (&[0, 0, 4][..], &[0xfc, 0xfd, 0xbf, 255, 31, 75][..])
        );
    }

    #[test]
    fn a_picture_without_pixels_is_refused() {
        let empty = Picture { width: 3, colours: &VIRIDIS, levels: Vec::new() };
        assert!(empty.data_uri().unwrap_err().to_string().contains("the picture cannot be encoded"));
    }
}
