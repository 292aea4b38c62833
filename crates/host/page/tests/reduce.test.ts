import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveBlocks } from '../src/conversation/live'
import { reduce, type Input } from '../src/conversation/reduce'
import { emptyConversation, type Conversation } from '../src/conversation/state'
import type { Frame } from '../src/contract'
import { Random } from './random'
import { randomSession } from './session_script'

const RUNS = 300

const isEvent = (input: Input) => 'event' in input

/** The part of a state that must not depend on what was streamed. */
function durable (state: Conversation) {
  const { live, liveMode, status, tools, tasks, ...rest } = state
  return { ...rest, tools: [...tools].map(([id, { output, omittedBytes, progress, partial, ...tool }]) => [id, tool]).filter(([, tool]) => (tool as { seq: number }).seq > 0) }
}

function checkSane (state: Conversation) {
  const keys = state.items.map(item => item.key)
  assert.equal(new Set(keys).size, keys.length, 'keys of items are unique')
  for (const item of state.items) {
    if (item.kind === 'tool') assert.ok(state.tools.has(item.id))
    if (item.kind === 'card') assert.ok(state.cards.has(item.id))
  }
  const resting = state.state === 'resting' || state.state === 'interrupted'
  if (!resting) return
  assert.equal([...state.cards.values()].filter(card => card.state === 'open').length, 0, 'no card is open when nothing runs')
  assert.equal(liveBlocks(state, null).length, 0, 'nothing is streamed when nothing runs')
}

function each (run: (random: Random) => void) {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = new Random(seed)
    try {
      run(random)
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
}

test('every prefix of a session is sane', () => {
  each(random => {
    let state = emptyConversation()
    for (const input of randomSession(random, 3)) {
      state = reduce(state, [input])
      checkSane(state)
    }
  })
})

test('inputs one by one or together give one state', () => {
  each(random => {
    const session = randomSession(random, 4)
    const together = reduce(emptyConversation(), session)
    const single = session.reduce((state, input) => reduce(state, [input]), emptyConversation())
    assert.deepEqual(single, together)
  })
})

test('reducing changes no earlier state', () => {
  each(random => {
    const session = randomSession(random, 3)
    const cut = random.below(session.length)
    const before = reduce(emptyConversation(), session.slice(0, cut))
    const copy = structuredClone(before)
    reduce(before, session.slice(cut))
    assert.deepEqual(before, copy)
  })
})

test('events that come twice change nothing', () => {
  each(random => {
    const session = randomSession(random, 3)
    const once = reduce(emptyConversation(), session.filter(isEvent))
    const twice = session.filter(isEvent).flatMap((input, index, all) => [input, all[random.below(index + 1)]!])
    assert.deepEqual(durable(reduce(emptyConversation(), twice)), durable(once))
  })
})

test('who reconnects at any time has the state of who stayed', () => {
  each(random => {
    const session = randomSession(random, 4)
    const stayed = reduce(emptyConversation(), session)
    let state = emptyConversation()
    let connected = true
    for (const [index, input] of session.entries()) {
      if (random.chance(15)) connected = !connected
      if (connected && state.last === 0) state = reduce(state, session.slice(0, index).filter(isEvent))
      else if (connected && random.chance(50)) state = reduce(state, [{ resync: true }, ...missed(session.slice(0, index), state.last)])
      if (connected) state = reduce(state, [...missed(session.slice(0, index), state.last), input])
    }
    state = reduce(state, missed(session, state.last))
    assert.deepEqual(durable(state), durable(stayed))
  })
})

function missed (session: Input[], last: number): Input[] {
  return session.filter(input => 'event' in input && input.event.seq > last)
}

test('live frames leave no trace in what is durable', () => {
  each(random => {
    const session = randomSession(random, 4)
    assert.deepEqual(durable(reduce(emptyConversation(), session)), durable(reduce(emptyConversation(), session.filter(isEvent))))
  })
})

test('live frames in any order are sane', () => {
  each(random => {
    const session = randomSession(random, 3)
    for (let swaps = session.length; swaps > 0; swaps--) {
      const a = random.below(session.length - 1)
      const [first, second] = [session[a]!, session[a + 1]!]
      if ('live' in first || 'live' in second) [session[a], session[a + 1]] = [second, first]
    }
    checkSane(reduce(emptyConversation(), session))
  })
})

test('a window that begins anywhere is sane', () => {
  each(random => {
    const session = randomSession(random, 4)
    const begin = random.below(session.length)
    checkSane(reduce(emptyConversation(), session.slice(begin)))
  })
})

test('a missing number is noticed and nothing is applied behind it', () => {
  const session = randomSession(new Random(7), 3).filter(isEvent)
  const state = reduce(emptyConversation(), [...session.slice(0, 4), ...session.slice(5)])
  assert.equal(state.gap, true)
  assert.equal(state.last, 4)
})

const streamed = (event: object): Input => ({ live: { type: 'stream_event', parent_tool_use_id: null, event } })
const event = (seq: number, frame: Frame): Input => ({ event: { session: 's', seq, at: seq * 1000, frame } })
const events = (...frames: Frame[]): Input[] => frames.map((frame, index) => event(index + 1, frame))

test('the stored block takes the place of the streamed one', () => {
  const before: Input[] = [
    streamed({ type: 'message_start', message: { id: 'm' } }),
    streamed({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    streamed({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } })
  ]
  const streaming = reduce(emptyConversation(), before)
  assert.deepEqual(liveBlocks(streaming, null).map(block => block.text), ['Hel'])
  const stored = reduce(streaming, [event(1, { type: 'assistant', uuid: 'a', message: { id: 'm', content: [{ type: 'text', text: 'Hello' }] } })])
  assert.deepEqual(liveBlocks(stored, null), [])
  assert.deepEqual(stored.items.map(item => item.kind === 'text' && item.text), ['Hello'])
})

test('a_summary_may_lack_ids', () => {
  const state = reduce(emptyConversation(), events({ type: 'tool_use_summary', summary: 'x' }, { type: 'assistant', message: { content: [{ type: 'text', text: 'Hi' }] } }))
  assert.equal(state.items.length, 1)
})

test('progress_may_come_before_the_block_ends', () => {
  const state = reduce(emptyConversation(), [
    { live: { type: 'tool_progress', tool_use_id: 't', tool_name: 'Bash', progress: { message: 'half' } } },
    ...events({ type: 'assistant', message: { id: 'm', content: [{ type: 'tool_use', id: 't', name: 'Bash', input: { command: 'ls' } }] } })
  ])
  assert.equal(state.tools.get('t')?.progress, 'half')
  assert.equal(state.tools.get('t')?.name, 'Bash')
})

test('cards_close_with_the_turn', () => {
  const state = reduce(emptyConversation(), events(
    { type: 'control_request', request_id: 'r', request: { subtype: 'can_use_tool', tool_name: 'Bash', tool_use_id: 't', input: {} } },
    { type: 'result', subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }
  ))
  assert.equal(state.cards.get('r')?.state, 'withdrawn')
})

test('a rewind folds messages and its undo brings them back', () => {
  const frames: Frame[] = [
    { type: 'user', uuid: 'p1', message: { role: 'user', content: 'one' } },
    { type: 'user', uuid: 'p2', message: { role: 'user', content: 'two' } },
    { type: 'host', subtype: 'rewound', to: 'p2', files: [], conversation: true, undo: 'z' },
    { type: 'host', subtype: 'rewound', to: 'z', files: [], conversation: true, undo: 'y' }
  ]
  const dropped = (state: Conversation) => state.items.filter(item => item.kind === 'prompt').map(item => item.dropped)
  assert.deepEqual(dropped(reduce(emptyConversation(), events(...frames.slice(0, 3)))), [false, true])
  assert.deepEqual(dropped(reduce(emptyConversation(), events(...frames))), [false, false])
})

test('the steps of TaskCreate and TaskUpdate are kept', () => {
  const call = (id: string, name: string, input: object): Frame => ({ type: 'assistant', message: { id: `m${id}`, content: [{ type: 'tool_use', id, name, input }] } })
  const answer = (id: string, meta: object): Frame => ({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] }, tool_use_result: meta })
  const state = reduce(emptyConversation(), events(
    call('1', 'TaskCreate', { subject: 'Build' }), answer('1', { task: { id: '1', subject: 'Build' } }),
    call('2', 'TaskUpdate', { taskId: '#1', status: 'completed' }), answer('2', { success: true })
  ))
  assert.deepEqual(state.steps, [{ id: '1', subject: 'Build', status: 'completed', active: null }])
})
