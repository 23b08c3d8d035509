//! Columns, aligned as Go's tabwriter aligns them.

/// Lines of cells. A cell is as wide as the widest in the lines directly above and below that go on after it; the last
/// cell of a line is not padded.
#[derive(Clone, Debug, Default)]
pub struct Table {
    lines: Vec<Vec<String>>,
}

const GAP: usize = 2;

impl Table {
    /// A table with these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        let mut table = Self::default();
        table.line(headings);
        table
    }

    /// Adds a line.
    pub fn line<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.lines.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, each line ended.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let mut widths: Vec<usize> = Vec::new();
        for at in 0..self.lines.len() {
            let line = &self.lines[at];
            let padded = line.len().saturating_sub(1);
            widths.truncate(padded);
            for column in widths.len()..padded {
                // A block begins here: as far as lines have this column.
                let block = self.lines[at..].iter().take_while(|it| it.len() > column + 1);
                let width = block.map(|it| it[column].chars().count()).max().unwrap_or(0);
                widths.push(width + GAP);
            }
            for (column, cell) in line.iter().enumerate() {
                text.push_str(cell);
                if column < padded {
                    let missing = widths[column].saturating_sub(cell.chars().count());
                    text.extend(std::iter::repeat_n(' ', missing));
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_block() {
        let mut table = Table::default();
        table.line(["SOURCE", "https://a/very/long/address"]);
        table.line(["ID", "DATE", "REVISION"]);
        table.line(["10", "2026-11-16", "main (abc)"]);
        table.line(Vec::<String>::new());
        table.line(["a", "b"]);
        assert_eq!(
            table.render(),
            "SOURCE  https://a/very/long/address\n\
             ID      DATE        REVISION\n\
             10      2026-11-16  main (abc)\n\
             \n\
             a  b\n"
        );
    }

    #[test]
    fn characters_count_and_the_last_cell_is_not_padded() {
        let mut table = Table::new(["N", "M", "X"]);
        table.line(["é", "", ""]);
        assert_eq!(table.render(), "N  M  X\né     \n");
    }
}
