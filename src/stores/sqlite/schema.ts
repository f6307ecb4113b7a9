// The tables of the SQLite store, as a list of migrations. Never edit one that was released: append.
//
// tasks     A rowid table: rows are kilobytes, so new ones go to the end of the file. Its key starts with the
//           id because ids sort by time: the index grows at its right edge, whoever the caller is.
// inputs    What a task was called with. Apart, as it never changes and may be large: SQLite writes a whole row
//           anew when one column of it changes. Its key is the task's row number, so that it needs no index.
// schedule  Apart from the record, as it changes with every poll, and narrow, so that a poll rewrites little.
// tally     Tasks per adapter text and stage, kept by triggers: metrics never scan the tasks, and a text whose
//           counts are all zero has lost its last task.

/** Marks the file as taskferry's, so that another program's database is refused ("tfer"). */
export const applicationId = 0x74666572;

/** Entry n brings a database from version n to n + 1. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE tasks (
    number INTEGER PRIMARY KEY,
    caller TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    stage TEXT NOT NULL,
    adapter TEXT NOT NULL,
    digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    start_key TEXT,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    outcome TEXT,
    UNIQUE (id, caller)
  ) STRICT;
  CREATE UNIQUE INDEX tasks_start_key ON tasks (caller, adapter, tool, start_key) WHERE start_key IS NOT NULL;
  CREATE INDEX tasks_expires_at ON tasks (expires_at);

  CREATE TABLE inputs (number INTEGER PRIMARY KEY, input TEXT NOT NULL) STRICT;
  CREATE TRIGGER inputs_delete AFTER DELETE ON tasks BEGIN
    DELETE FROM inputs WHERE number = old.number;
  END;

  CREATE TABLE schedule (
    id TEXT NOT NULL,
    caller TEXT NOT NULL,
    adapter TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    interval_ms INTEGER NOT NULL,
    lease_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, caller)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX schedule_due ON schedule (adapter, due_at);
  CREATE INDEX schedule_leased ON schedule (adapter, lease_until) WHERE lease_until > 0;

  CREATE TABLE adapters (digest TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

  CREATE TABLE tally (
    digest TEXT NOT NULL,
    adapter TEXT NOT NULL,
    stage TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (digest, adapter, stage)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER tally_insert AFTER INSERT ON tasks BEGIN
    INSERT INTO tally VALUES (new.digest, new.adapter, new.stage, 1)
      ON CONFLICT DO UPDATE SET tasks = tasks + 1;
  END;
  CREATE TRIGGER tally_delete AFTER DELETE ON tasks BEGIN
    UPDATE tally SET tasks = tasks - 1
      WHERE digest = old.digest AND adapter = old.adapter AND stage = old.stage;
  END;
  CREATE TRIGGER tally_stage AFTER UPDATE OF stage ON tasks WHEN old.stage <> new.stage BEGIN
    UPDATE tally SET tasks = tasks - 1
      WHERE digest = old.digest AND adapter = old.adapter AND stage = old.stage;
    INSERT INTO tally VALUES (new.digest, new.adapter, new.stage, 1)
      ON CONFLICT DO UPDATE SET tasks = tasks + 1;
  END;
  `,
  // Deadlines are kept though an adapter's budget lets nothing be polled, so they are found without it.
  `
  ALTER TABLE schedule ADD COLUMN deadline INTEGER NOT NULL DEFAULT 0;
  UPDATE schedule SET deadline = (
    SELECT CAST(json_extract(t.state, '$.deadline') AS INTEGER) FROM tasks t
    WHERE t.id = schedule.id AND t.caller = schedule.caller
  );
  CREATE INDEX schedule_deadline ON schedule (deadline);
  `,
];
