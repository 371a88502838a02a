//! Flatbuffer tables as they are written: each behind its vtable, and behind it what it points to.

/// A field of a table.
pub(super) enum Field {
    /// The default, which is left out.
    Default,
    U8(u8),
    I16(i16),
    I32(i32),
    I64(i64),
    Text(String),
    Table(Table),
    Tables(Vec<Table>),
    /// Structs of this many words each.
    Words(Vec<i64>, usize),
}

/// A table by its fields, in the order of the schema.
pub(super) struct Table(pub(super) Vec<Field>);

impl Table {
    /// The bytes of a buffer with this root, a multiple of 8.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        let at = self.put(&mut out);
        point(&mut out, 0, at);
        pad(&mut out, 8);
        out
    }

    // Appends it; where it begins.
    fn put(&self, out: &mut Vec<u8>) -> usize {
        pad(out, 4);
        let vtable = out.len();
        let table = (vtable + 4 + 2 * self.0.len()).next_multiple_of(4);
        let (mut places, mut end) = (Vec::with_capacity(self.0.len()), table + 4);
        for field in &self.0 {
            let width = field.width();
            // A number begins at a multiple of its size.
            let place = end.next_multiple_of(width.max(1));
            places.push(place);
            end = if width == 0 { end } else { place + width };
        }
        out.resize(end, 0);
        // Schemas have few fields: all of this is far below the 16 bits.
        set(out, vtable, &(4 + 2 * self.0.len() as u16).to_le_bytes());
        set(out, vtable + 2, &((end - table) as u16).to_le_bytes());
        set(out, table, &((table - vtable) as i32).to_le_bytes());
        for (number, (field, place)) in self.0.iter().zip(places).enumerate() {
            if field.width() > 0 {
                set(out, vtable + 4 + 2 * number, &((place - table) as u16).to_le_bytes());
            }
            field.put(place, out);
        }
        table
    }
}

impl Field {
    // Bytes that it takes in its table.
    fn width(&self) -> usize {
        match self {
            Field::Default => 0,
            Field::U8(_) => 1,
            Field::I16(_) => 2,
            Field::I64(_) => 8,
            _ => 4,
        }
    }

    // Fills its place, and appends what it points to.
    fn put(&self, place: usize, out: &mut Vec<u8>) {
        match self {
            Field::Default => {}
            Field::U8(number) => set(out, place, &[*number]),
            Field::I16(number) => set(out, place, &number.to_le_bytes()),
            Field::I32(number) => set(out, place, &number.to_le_bytes()),
            Field::I64(number) => set(out, place, &number.to_le_bytes()),
            Field::Text(text) => {
                let at = begin(text.len(), 4, out);
                point(out, place, at);
                out.extend(text.as_bytes());
                out.push(0);
            }
            Field::Table(table) => {
                let at = table.put(out);
                point(out, place, at);
            }
            Field::Tables(tables) => {
                let at = begin(tables.len(), 4, out);
                point(out, place, at);
                let first = out.len();
                out.resize(first + 4 * tables.len(), 0);
                for (number, table) in tables.iter().enumerate() {
                    let to = table.put(out);
                    point(out, first + 4 * number, to);
                }
            }
            Field::Words(words, each) => {
                let at = begin(words.len() / each, 8, out);
                point(out, place, at);
                out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
        }
    }
}

// Appends the length of a vector whose elements begin at a multiple of `width`; where it is.
fn begin(count: usize, width: usize, out: &mut Vec<u8>) -> usize {
    pad(out, 4);
    while !(out.len() + 4).is_multiple_of(width) {
        out.extend([0; 4]);
    }
    out.extend((count as u32).to_le_bytes());
    out.len() - 4
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

fn set(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

// A place is written as the distance from where it is written.
fn point(out: &mut [u8], at: usize, to: usize) {
    set(out, at, &((to - at) as u32).to_le_bytes());
}
