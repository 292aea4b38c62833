//! What keeps a turn within bounds: the shape of its answer, its budget, other models, the room that it has, what it is told.

mod budget;
mod prompt;
mod room;
mod shape;
mod thinking;
mod understudy;
