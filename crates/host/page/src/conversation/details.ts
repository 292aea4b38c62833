// What the side panel shows: the steps of the task list, and the files that were changed.

import { splitLines } from '../text/diff'
import type { Conversation, Step } from './state'

const EDITORS = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

function setTodos (state: Conversation, todos: unknown) {
  if (!Array.isArray(todos)) return
  state.steps = (todos as { content?: string, status?: string, activeForm?: string }[]).map((todo, index) => ({
    id: String(index + 1),
    subject: String(todo.content ?? ''),
    status: stepStatus(todo.status),
    active: todo.activeForm ?? null
  }))
}

/** A call counts once its result is there. */
export function applyResultToDetails (state: Conversation, id: string) {
  const tool = state.tools.get(id)
  if (!tool || tool.state !== 'done') return
  if (EDITORS.includes(tool.name)) return countChange(state, tool.input, tool.meta)
  if (tool.name === 'TodoWrite' && tool.parent === null) return setTodos(state, tool.input.todos)
  if (tool.name === 'TaskCreate') {
    const task = tool.meta?.task as { id?: string, subject?: string } | undefined
    if (!task?.id) return
    state.steps = [...state.steps.filter(step => step.id !== task.id), { id: task.id, subject: String(task.subject ?? ''), status: 'pending', active: null }]
  }
  if (tool.name === 'TaskUpdate') {
    const stepId = String(tool.input.taskId ?? '').replace(/^#/, '')
    if (tool.input.status === 'deleted') {
      state.steps = state.steps.filter(step => step.id !== stepId)
      return
    }
    state.steps = state.steps.map(step => step.id !== stepId
      ? step
      : {
          ...step,
          subject: typeof tool.input.subject === 'string' ? tool.input.subject : step.subject,
          status: tool.input.status ? stepStatus(String(tool.input.status)) : step.status
        })
  }
}

function stepStatus (status: string | undefined): Step['status'] {
  return status === 'completed' || status === 'in_progress' ? status : 'pending'
}

export interface Hunk { oldStart: number, newStart: number, lines: string[] }

export function hunksOf (meta: Record<string, unknown> | null): Hunk[] {
  return Array.isArray(meta?.structuredPatch) ? meta.structuredPatch as Hunk[] : []
}

function countChange (state: Conversation, input: Record<string, unknown>, meta: Record<string, unknown> | null) {
  const path = String(meta?.filePath ?? input.file_path ?? input.notebook_path ?? '')
  if (!path) return
  const known = state.files.get(path) ?? { added: 0, removed: 0 }
  let { added, removed } = known
  const hunks = hunksOf(meta)
  for (const line of hunks.flatMap(hunk => hunk.lines)) {
    if (line.startsWith('+')) added++
    if (line.startsWith('-')) removed++
  }
  if (!hunks.length && typeof input.content === 'string' && meta?.type !== 'update') added += splitLines(input.content).length
  state.files.set(path, { added, removed })
}
