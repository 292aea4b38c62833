//! What keeps a turn within bounds: the shape of its answer, its budget, other models, the room that it has.

mod budget;
mod room;
mod shape;
mod telling;
mod thinking;
mod understudy;
