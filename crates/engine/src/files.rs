//! Disk: reading, writing and looking at files. Only this file and the session log open files for the engine.
