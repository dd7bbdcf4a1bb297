//! Tables: a column is declared once, with its key, heads, place, and what its cells say.

use std::borrow::{Borrow, Cow};

use crate::document::cell::Cell;

/// The two tables in which a column is, where one does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Both,
    First,
    /// Also: a row without a cell in any of these columns is not in the second table.
    Second,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name for programs: the head in lower case, unless another is given.
    pub(crate) key: Cow<'static, str>,
    pub(crate) head: Cow<'static, str>,
    /// The head where words are abbreviated.
    pub(crate) short: Option<&'static str>,
    /// Its meaning, where a page has room.
    pub(crate) title: String,
    /// Whether cells are figures, aligned to the right.
    pub(crate) figures: bool,
    /// Whether its figures can do without the blank before their unit.
    pub(crate) tight: bool,
    pub(crate) part: Part,
    /// Whether a table that is too wide goes without it, since another column says the same.
    pub(crate) spare: bool,
    /// Whether it goes where no row has a value for it.
    pub(crate) if_any: bool,
    /// Whether only JSON and CSV have it.
    pub(crate) data: bool,
}

/// How a terminal shows a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// With a rule below the heads, fitted to the width.
    Ruled,
    /// As wide as its cells, with a rule, indented by so many blanks.
    RuledBy(u16),
    /// The same without a rule, and without heads if none has a word.
    Indented(u16),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    /// In the order of the columns.
    pub(crate) cells: Vec<Cell>,
    /// The subject of the row, where scripts of a page look for it.
    pub(crate) mark: Option<String>,
    /// A text over all columns instead of cells.
    pub(crate) over: Option<String>,
}

/// A table. [`Columns`] makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its content, in few words.
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) look: Look,
    /// Its name for the scripts of a page, and for its style.
    pub(crate) id: &'static str,
    pub(crate) class: &'static str,
}

impl Table {
    #[must_use]
    pub fn look(self, look: Look) -> Table {
        Table { look, ..self }
    }

    #[must_use]
    pub fn id(self, id: &'static str) -> Table {
        Table { id, ..self }
    }

    #[must_use]
    pub fn class(self, class: &'static str) -> Table {
        Table { class, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Leaves out all rows behind the first `most`; how many those are.
    pub fn cut(&mut self, most: usize) -> usize {
        let more = self.rows.len().saturating_sub(most);
        self.rows.truncate(most);
        more
    }

    /// With the columns alone that people see.
    pub(crate) fn seen(&self) -> Table {
        self.only(|column, _| !column.data)
    }

    /// With the columns alone for which `keep` says so, given their cells.
    pub(crate) fn only(&self, mut keep: impl FnMut(&Column, &[&Cell]) -> bool) -> Table {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.cells.get(at));
        let mut keeps = |at: &usize| keep(&self.columns[*at], &cells(*at).collect::<Vec<_>>());
        let kept: Vec<usize> = (0..self.columns.len()).filter(|at| keeps(at)).collect();
        let row = |row: &Row| Row {
            cells: kept.iter().filter_map(|&at| row.cells.get(at).cloned()).collect(),
            ..row.clone()
        };
        Table {
            columns: kept.iter().map(|&at| self.columns[at].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
            name: self.name.clone(),
            ..*self
        }
    }
}

type Says<'a, T, V = Cell> = Box<dyn Fn(&T) -> V + 'a>;

/// The columns of a table of things `T`.
///
/// ```
/// use gpuio_base::document::{Cell, Columns, Document, Section};
///
/// let table = Columns::<(&str, u64)>::new()
///     .words("device", |(name, _)| *name)
///     .figures("moved", |(_, bytes)| Cell::bytes(*bytes))
///     .table("devices", [("nvme0n1", 4096)]);
/// let mut section = Section::default();
/// section.table(table);
/// let page = Document { sections: vec![section], ..Document::default() };
/// assert_eq!(page.terminal(80), "device      moved\n-----------------\nnvme0n1  4.00 KiB\n");
/// assert_eq!(page.csv(), "device,moved\nnvme0n1,4096\n");
/// ```
pub struct Columns<'a, T> {
    all: Vec<(Column, Says<'a, T>)>,
    mark: Option<Says<'a, T, String>>,
    over: Option<Says<'a, T, Option<String>>>,
}

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.iter().map(|(column, _)| column)).finish()
    }
}

impl<T> Default for Columns<'_, T> {
    fn default() -> Self {
        Columns { all: Vec::new(), mark: None, over: None }
    }
}

impl<'a, T> Columns<'a, T> {
    pub fn new() -> Self {
        Columns::default()
    }

    /// A column of text, aligned to the left.
    #[must_use]
    pub fn words<C: Into<Cell>>(
        self,
        head: impl Into<Cow<'static, str>>,
        cell: impl Fn(&T) -> C + 'a,
    ) -> Self {
        self.column(head.into(), false, Box::new(move |row| cell(row).into()))
    }

    /// A column of figures, aligned to the right.
    #[must_use]
    pub fn figures<C: Into<Cell>>(
        self,
        head: impl Into<Cow<'static, str>>,
        cell: impl Fn(&T) -> C + 'a,
    ) -> Self {
        self.column(head.into(), true, Box::new(move |row| cell(row).into()))
    }

    fn column(mut self, head: Cow<'static, str>, figures: bool, says: Says<'a, T>) -> Self {
        let key = head.to_lowercase().replace([' ', '.'], "_").into();
        let title = String::new();
        let (short, tight, part) = (None, false, Part::Both);
        let (spare, if_any, data) = (false, false, false);
        let column = Column { key, head, short, title, figures, tight, part, spare, if_any, data };
        self.all.push((column, says));
        self
    }

    /// More columns, if `yes`.
    #[must_use]
    pub fn when(self, yes: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if yes { more(self) } else { self }
    }

    /// The subject of each row, for scripts of a page.
    #[must_use]
    pub fn mark(mut self, mark: impl Fn(&T) -> String + 'a) -> Self {
        self.mark = Some(Box::new(mark));
        self
    }

    /// The text over all columns of those rows that are no rows of cells.
    #[must_use]
    pub fn over(mut self, over: impl Fn(&T) -> Option<String> + 'a) -> Self {
        self.over = Some(Box::new(over));
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Self {
        if let Some((column, _)) = self.all.last_mut() {
            change(column);
        }
        self
    }

    /// Another key for the last column.
    #[must_use]
    pub fn key(self, key: impl Into<Cow<'static, str>>) -> Self {
        self.last(|column| column.key = key.into())
    }

    /// The meaning of the last column.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.last(|column| column.title = title.into())
    }

    /// The head of the last column where words are abbreviated.
    #[must_use]
    pub fn short(self, head: &'static str) -> Self {
        self.last(|column| column.short = Some(head))
    }

    /// Figures of the last column can do without the blank before their unit.
    #[must_use]
    pub fn tight(self) -> Self {
        self.last(|column| column.tight = true)
    }

    /// The table in which the last column is, where one does not fit.
    #[must_use]
    pub fn part(self, part: Part) -> Self {
        self.last(|column| column.part = part)
    }

    /// A table that is too wide goes without the last column, where another says the same.
    #[must_use]
    pub fn spare(self, yes: bool) -> Self {
        self.last(|column| column.spare = yes)
    }

    /// Leaves the last column out where no row has a value in it.
    #[must_use]
    pub fn if_any(self) -> Self {
        self.last(|column| column.if_any = true)
    }

    /// The last column is for programs alone: JSON and CSV have it.
    #[must_use]
    pub fn data(self) -> Self {
        self.last(|column| column.data = true)
    }

    #[must_use]
    pub fn table<R: Borrow<T>>(
        self,
        name: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        let row = |row: R| {
            let row = row.borrow();
            let over = self.over.as_ref().and_then(|over| over(row));
            let cells = self.all.iter().map(|(_, says)| match over {
                Some(_) => Cell::default(),
                None => says(row),
            });
            Row { cells: cells.collect(), mark: self.mark.as_ref().map(|mark| mark(row)), over }
        };
        let rows = rows.into_iter().map(row).collect();
        let columns = self.all.into_iter().map(|(column, _)| column).collect();
        let (name, look) = (name.into(), Look::Ruled);
        let table = Table { name, columns, rows, look, id: "", class: "" };
        table.only(|column, cells| !column.if_any || cells.iter().any(|cell| !cell.is_absent()))
    }
}
