// What a driver adds to the adapter format: its own fields under `upstream` and in every step.

import type { z } from 'zod';
import type { Json } from '../exact-json.ts';
import type { Expression } from './expression.ts';
import type { Names } from './expression-names.ts';
import type { TextTemplate, ValueTemplate } from './template.ts';

/** Where a value stands in the file, relative to the object being compiled. */
export type Path = readonly (string | number)[];

/** Which step is being compiled; a driver may ask for other fields in some of them. */
export type StepRole = 'create' | 'find' | 'status' | 'cancel' | 'cleanup' | 'ask' | 'fetch' | 'call';

export interface DriverFormat<Upstream = unknown, Step = unknown> {
  /** The word after `driver:`. */
  name: string;
  /** Fields of `upstream:` beside `driver`. */
  upstream: z.ZodRawShape;
  /** Fields of a step beside the common ones (step, when, expect, capture …). */
  step: z.ZodRawShape;
  compileUpstream(raw: { [field: string]: unknown }, compiler: Compiler): Upstream;
  /**
   * What the upstream's own credentials are called in whatever is sent: read there like `secrets`, and nowhere else.
   * Without `upstream` the file's is faulty, and anything may be in it. Default: none.
   */
  credentials?(upstream: Upstream | undefined): Names;
  compileStep(raw: { [field: string]: unknown }, compiler: Compiler, role: StepRole): Step;
  /** The request only reads, so that making it again does no harm. */
  isSafe(step: Step): boolean;
  /**
   * Why `idempotency.header` can't have this name, as a sentence without its end; undefined when it can. A driver
   * without headers refuses every name.
   */
  keyHeaderFault(name: string): string | undefined;
}

/** Handed to a driver's format: compiles holes with the names that may be read at that place. */
export interface Compiler {
  /** Bare CEL. `want`: the type it must give, else a problem is reported. */
  expression(path: Path, source: string, want?: 'bool' | 'string' | 'int' | 'list'): Expression;
  /**
   * Text with holes. `secrets: false` where a secret must not go even upstream (a path). `offset`: where `source`
   * starts in the field, when only a part of it is the template.
   */
  text(path: Path, source: string, options?: { secrets?: boolean; offset?: number }): TextTemplate;
  /** A structure with holes. */
  value(path: Path, raw: Json): ValueTemplate;
  /** Compiles what is read once this step's own reply is there: `response`, and further names. */
  afterReply(names?: Names): Compiler;
  /** A file named in the adapter, relative to the adapter's own folder, as an absolute path. */
  file(path: string): string;
  /** The same compiler for the object at `path`. `sent`: names that texts and values may read as well; `reply`: that expressions may. */
  within(path: Path, more?: { sent?: Names; reply?: Names }): Compiler;
  /** Reports a fault; loading goes on so that all faults are listed at once. */
  problem(path: Path, message: string, hint?: string): void;
}
