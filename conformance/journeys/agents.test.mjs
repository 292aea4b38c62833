// Agents: side by side, in the background, stopped, and teammates that go on after the first result.

import assert from 'node:assert/strict'
import { becomes, eventually, journey, log, see, send } from './harness.mjs'
import { call, textOf } from './model.mjs'

journey('J-14 task lists and agents side by side', {}, async world => {
  const steps = ['Plan', 'Build', 'Check'].flatMap(subject => call('TaskCreate', { subject, description: '', activeForm: `${subject} it now` }))
  const done = ['1', '2'].flatMap(taskId => call('TaskUpdate', { taskId, status: 'completed' }))
  const agent = (name, extra = {}) => ({ type: 'tool_use', name: 'Agent', input: { description: `agent ${name}`, prompt: `work of ${name}`, subagent_type: 'general-purpose', ...extra } })
  const slow = world.model.gate()
  const background = world.model.gate()
  world.model.on('work of one', call('Glob', { pattern: '*' }), 'One found it.')
  world.model.on('work of two', async () => { await slow.opened; return 'Two found it.' })
  world.model.on('work of three', async () => { await background.opened; return 'Three found it late.' })
  world.model.on('divide and rule', steps, [agent('one'), agent('two'), agent('three', { run_in_background: true })],
    done, 'The main work is over.')
  const { id } = await world.session('divide and rule')
  const page = await world.open(`/s/${id}`)
  const details = page.getByRole('complementary', { name: 'Details' })
  await see(details.getByRole('list', { name: 'Tasks' }).getByText('Plan'))
  const agents = details.getByRole('region', { name: 'Agents' })
  for (const name of ['one', 'two', 'three']) await see(agents.getByText(`agent ${name}`))
  await see(agents.getByText('in the background', { exact: false }))
  await becomes(page, () => log(page).getByRole('article', { name: 'Tool: Agent' }).count(), 3)
  await agents.getByRole('button', { name: 'Stop agent two' }).click()
  await see(log(page).getByText('The main work is over.'))
  await see(details.getByText('2 of 3'))
  slow.open()
  background.open()
  await see(log(page).getByText(/agent three.*|Three found it late/).last())
  await eventually(page, async () => await agents.getByRole('button', { name: /^Stop/ }).count() === 0, 'nothing runs any more')
  await world.until(id, frame => frame.subtype === 'task_notification')
  await log(page).getByRole('article', { name: 'Tool: Agent' }).filter({ hasText: 'agent one' }).getByRole('button').first().click()
  await see(log(page).getByRole('article', { name: 'Tool: Glob' }))
})

journey('J-15 teammates go on after the first result', { environment: { CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS: '1' } }, async world => {
  const work = world.model.gate()
  const last = request => JSON.stringify(request.messages.at(-1).content)
  world.model.respond = request => {
    const system = (request.system ?? []).map(block => block.text).join('\n')
    const name = ['ann', 'bob'].find(name => system.includes(`You are ${name},`))
    const text = last(request)
    if (name && text.includes('Delivered')) return 'I am done.'
    if (name) return async () => { await work.opened; return call('SendMessage', { type: 'message', recipient: 'team-lead', content: `Found by ${name}.`, summary: 'found' }) }
    if (text.includes('Created the team')) return ['ann', 'bob'].flatMap(mate => call('Agent', { description: 'look', prompt: 'Look.', name: mate, team_name: 'readers' }))
    if (text.includes('has joined')) return 'Dispatched.'
    if (text.includes('Found by')) return 'The team has reported.'
    if (text.includes('teammate-message')) return 'Noted.'
    if (text.includes('meanwhile')) return 'Answered meanwhile.'
    return call('TeamCreate', { team_name: 'readers', description: 'looks' })
  }
  const { id } = await world.session('look around', { mode: 'default' })
  const page = await world.open(`/s/${id}`)
  await see(log(page).getByText('Dispatched.'))
  await world.resting(id)
  await send(page, 'meanwhile')
  await see(log(page).getByText('Answered meanwhile.'))
  work.open()
  await see(log(page).getByText('The team has reported.'))
  const results = events => events.filter(event => event.frame.type === 'result').map(event => event.frame.result)
  await world.until(id, (_, events) => results(events).length >= 3)
  assert.equal(results(await world.events(id))[0], 'Dispatched.')
  await eventually(page, () => world.model.requests.some(request => textOf(request).includes('Found by ann.')), 'the leader reads what ann has found')
})
