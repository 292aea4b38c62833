// System frames: the start of a turn, notices, and the life of tasks.

import type { HostEvent, Mode } from '../contract'
import { pushNotice } from './items'
import type { AgentTask, Conversation } from './state'

export function applySystem (state: Conversation, event: HostEvent) {
  const { frame, seq } = event
  switch (frame.subtype) {
    case 'init':
      state.model = String(frame.model ?? '') || state.model
      state.mode = (frame.permissionMode as Mode | undefined) ?? state.mode
      state.liveMode = null
      state.commands = Array.isArray(frame.slash_commands) ? frame.slash_commands.map(String) : state.commands
      return
    case 'compact_boundary':
      return pushNotice(state, `event:${seq}`, 'info', 'Earlier messages were summarized.')
    case 'model_fallback':
      return pushNotice(state, `event:${seq}`, 'warning', String(frame.message ?? 'The fallback model is used.'))
    case 'informational':
      return pushNotice(state, `event:${seq}`, frame.level === 'warning' ? 'warning' : 'info', String(frame.content ?? ''))
    case 'permission_denied':
      return pushNotice(state, `event:${seq}`, 'warning', `${String(frame.tool_name ?? 'A call')} was denied: ${String(frame.message ?? '')}`)
    case 'task_started': return startTask(state, event)
    case 'task_updated': return updateTask(state, event)
    case 'task_notification': return endTask(state, event)
  }
}

function startTask (state: Conversation, { frame, at }: HostEvent) {
  if (frame.ambient) return
  const id = String(frame.task_id)
  const task: AgentTask = {
    id,
    description: String(frame.description ?? ''),
    type: String(frame.task_type ?? ''),
    agent: (frame.subagent_type as string | null | undefined) ?? null,
    toolUseId: (frame.tool_use_id as string | null | undefined) ?? null,
    parent: (frame.parent_task_id as string | null | undefined) ?? null,
    status: 'running',
    background: Boolean(frame.is_backgrounded),
    lastTool: null,
    summary: null,
    tokens: 0,
    toolUses: 0,
    durationMs: 0,
    startedAt: at
  }
  state.tasks.set(id, task)
}

function updateTask (state: Conversation, { frame }: HostEvent) {
  const task = state.tasks.get(String(frame.task_id))
  if (!task) return
  const patch = (frame.patch ?? {}) as { status?: string, description?: string, is_backgrounded?: boolean }
  state.tasks.set(task.id, {
    ...task,
    status: taskStatus(patch.status) ?? task.status,
    description: patch.description ?? task.description,
    background: patch.is_backgrounded ?? task.background
  })
}

function endTask (state: Conversation, { frame, seq, at }: HostEvent) {
  const id = String(frame.task_id)
  const task = state.tasks.get(id)
  const status = taskStatus(String(frame.status)) ?? 'completed'
  const summary = String(frame.summary ?? '')
  if (task) state.tasks.set(id, { ...task, status, summary, durationMs: at - task.startedAt })
  if (!task?.background) return
  const what = task.description || 'A background task'
  pushNotice(state, `event:${seq}`, status === 'failed' ? 'warning' : 'info', `${what}: ${summary || status}`)
}

function taskStatus (status: string | undefined): AgentTask['status'] | null {
  switch (status) {
    case 'running': case 'pending': case 'paused': return 'running'
    case 'completed': return 'completed'
    case 'failed': return 'failed'
    case 'stopped': case 'killed': case 'cancelled': return 'stopped'
    default: return null
  }
}
