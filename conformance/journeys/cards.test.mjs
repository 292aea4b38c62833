// Cards: what is asked, what an answer does, and that it happens once.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { becomes, card, eventually, gone, journey, log, see } from './harness.mjs'
import { call, textOf } from './model.mjs'

journey('J-03 allow once, then deny with a note', { phone: true }, async world => {
  world.model.on('make files', call('Bash', { command: 'touch one.txt' }), call('Bash', { command: 'touch two.txt' }), 'Done with it.')
  const { id } = await world.session('make files')
  const page = await world.open(`/s/${id}`)
  await see(card(page, 'Bash').getByText('touch one.txt'))
  await becomes(page, () => page.title(), '(1) Whimbrel · make files')
  assert.equal(world.exists('one.txt'), false)
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(page.getByRole('status').getByText(/^Allowed once by .+, \d/))
  const second = card(page, 'Bash')
  await see(second.getByText('touch two.txt'))
  assert.equal(world.exists('one.txt'), true)
  await second.getByRole('textbox', { name: 'Note to the agent' }).fill('Use three instead')
  await second.getByRole('button', { name: 'Deny', exact: true }).click()
  await see(log(page).getByText('Done with it.'))
  assert.equal(world.exists('two.txt'), false)
  assert.match(textOf(world.model.requests.at(-1)), /Use three instead/)
  await see(page.getByRole('status').getByText(/^Denied by .+, \d/))
  const answers = (await world.events(id)).filter(event => event.frame.subtype === 'answered').map(({ frame, at }) => ({ decision: frame.decision, message: frame.message, by: Boolean(frame.by.name), at: at > 0 }))
  assert.deepEqual(answers.map(answer => [answer.decision, answer.message ?? null, answer.by, answer.at]), [['allow', null, true, true], ['deny', 'Use three instead', true, true]])
})

journey('J-04 always allow shows its rule and holds where it says', {}, async world => {
  world.model.on('twice', call('Bash', { command: 'touch a.txt' }), call('Bash', { command: 'touch a.txt' }), call('Bash', { command: 'mkdir other' }), 'Finished.')
  world.model.on('again', call('Bash', { command: 'touch a.txt' }), 'Again finished.')
  const { id } = await world.session('twice')
  const page = await world.open(`/s/${id}`)
  await see(card(page, 'Bash'))
  const rule = (await world.api('GET', '/v1/requests?state=open')).requests[0].scopes[0].rule
  await see(card(page, 'Bash').getByText(rule, { exact: false }))
  await card(page, 'Bash').getByRole('button', { name: 'Allow for this session' }).click()
  await see(card(page, 'Bash').getByText('mkdir other'))
  assert.equal((await world.events(id)).filter(event => event.frame.type === 'control_request').length, 2)
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(log(page).getByText('Finished.'))

  await world.api('PUT', '/v1/folders/trust', { folder: world.project, trusted: true })
  const other = await world.session('again')
  await page.goto(`${world.url}/s/${other.id}`)
  await card(page, 'Bash').getByRole('button', { name: 'Always allow…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Always allow' })
  await see(dialog.getByText(rule))
  await dialog.getByRole('radio', { name: 'This project' }).check()
  await dialog.getByRole('button', { name: 'Allow', exact: true }).click()
  await see(log(page).getByText('Again finished.'))
  const settings = () => JSON.parse(readFileSync(join(world.project, '.claude', 'settings.json'), 'utf8'))
  await eventually(page, () => settings().permissions.allow.includes(rule), 'the rule is in the settings of the project')
  const third = await world.session('again')
  await world.resting(third.id)
  assert.equal((await world.events(third.id)).filter(event => event.frame.type === 'control_request').length, 0)

  await page.getByRole('link', { name: 'Settings' }).click()
  const row = page.getByRole('table', { name: 'Permission rules' }).getByRole('row').filter({ hasText: rule }).filter({ hasText: 'This project' })
  await row.getByRole('button', { name: 'Remove' }).click()
  await gone(row)
  await eventually(page, () => !(settings().permissions?.allow ?? []).includes(rule), 'the rule has left the settings of the project')
  const fourth = await world.session('again')
  await world.until(fourth.id, frame => frame.type === 'control_request')
})

const QUESTIONS = [
  { question: 'Which color?', header: 'Color', multiSelect: false, options: [{ label: 'Red', description: 'Warm' }, { label: 'Blue', description: 'Cool' }] },
  { question: 'Which sizes?', header: 'Sizes', multiSelect: true, options: [{ label: 'Small', description: '' }, { label: 'Large', description: '' }, { label: 'Huge', description: '' }] }
]

journey('J-05 questions are answered exactly as chosen', { phone: true }, async world => {
  world.model.on('paint it', call('AskUserQuestion', { questions: QUESTIONS }), 'As you wish.')
  const { id } = await world.session('paint it')
  const page = await world.open(`/s/${id}`)
  const question = page.getByRole('region', { name: 'Question' })
  await question.getByRole('group', { name: 'Which color?' }).getByRole('textbox', { name: 'Other answer' }).fill('Something in teal')
  await question.getByRole('group', { name: 'Which sizes?' }).getByRole('checkbox', { name: 'Small' }).check()
  await question.getByRole('group', { name: 'Which sizes?' }).getByRole('checkbox', { name: 'Huge' }).check()
  await question.getByRole('button', { name: 'Answer', exact: true }).click()
  await see(log(page).getByText('As you wish.'))
  const result = (await world.events(id)).map(event => event.frame).find(frame => frame.tool_use_result?.answers)
  assert.deepEqual(result.tool_use_result.answers, { 'Which color?': 'Something in teal', 'Which sizes?': 'Small, Huge' })
  await eventually(page, () => textOf(world.model.requests.at(-1)).includes('Something in teal'), 'the model reads the answer')
})

journey('J-06 an edited command runs and both are shown', {}, async world => {
  world.model.on('tidy up', call('Bash', { command: 'touch asked.txt' }), 'Tidy.')
  const { id } = await world.session('tidy up')
  const page = await world.open(`/s/${id}`)
  await card(page, 'Bash').getByRole('button', { name: 'Edit input' }).click()
  await card(page, 'Bash').getByRole('textbox', { name: 'Input' }).fill('touch edited.txt')
  await card(page, 'Bash').getByRole('button', { name: 'Allow edited' }).click()
  await see(log(page).getByText('Tidy.'))
  assert.equal(world.exists('edited.txt'), true)
  assert.equal(world.exists('asked.txt'), false)
  await see(page.getByRole('status').getByText(/^Allowed with an edited input by/))
  await see(card(page, 'Bash').getByText('touch asked.txt'))
  await see(card(page, 'Bash').getByText('touch edited.txt'))
})

journey('an input that does not fit leaves the card open', {}, async world => {
  world.model.on('write it', call('Write', { file_path: join(world.project, 'a.txt'), content: 'one' }), 'Written.')
  const { id } = await world.session('write it')
  const page = await world.open(`/s/${id}`)
  await card(page, 'Write').getByRole('button', { name: 'Edit input' }).click()
  await card(page, 'Write').getByRole('textbox', { name: 'Input' }).fill('{"file_path": 7}')
  await card(page, 'Write').getByRole('button', { name: 'Allow edited' }).click()
  await see(card(page, 'Write').getByRole('alert'))
  await card(page, 'Write').getByRole('textbox', { name: 'Input' }).fill(JSON.stringify({ file_path: join(world.project, 'b.txt'), content: 'two' }))
  await card(page, 'Write').getByRole('button', { name: 'Allow edited' }).click()
  await see(log(page).getByText('Written.'))
  assert.equal(world.file('b.txt'), 'two')
})

for (const mode of ['plan', 'bypassPermissions']) {
  journey(`J-07 a plan is kept in work, then approved (${mode})`, {}, async world => {
    const steps = [call('ExitPlanMode', { plan: '# First plan\n\n1. Guess' }), call('ExitPlanMode', { plan: '# Better plan\n\n1. Measure' }), 'Off we go.']
    world.model.on('think first', ...(mode === 'plan' ? steps : [call('EnterPlanMode', {}), ...steps]))
    const { id } = await world.session('think first', { mode })
    const page = await world.open(`/s/${id}`)
    const plan = page.getByRole('region', { name: 'Plan' })
    await see(plan.getByText('First plan'))
    await plan.getByRole('textbox', { name: 'Note to the agent' }).fill('Measure before you guess')
    await plan.getByRole('button', { name: 'Keep planning' }).click()
    await see(plan.getByText('Better plan'))
    assert.match(textOf(world.model.requests.at(-1)), /Measure before you guess/)
    if (mode === 'plan') await becomes(page, () => page.getByRole('combobox', { name: 'Mode', exact: true }).inputValue(), 'plan')
    await plan.getByRole('button', { name: 'Approve and accept edits' }).click()
    await see(log(page).getByText('Off we go.'))
    await becomes(page, () => page.getByRole('combobox', { name: 'Mode', exact: true }).inputValue(), 'acceptEdits')
  })
}

journey('J-08 a card is answered in another browser', { phone: true }, async world => {
  world.model.on('count', call('Bash', { command: 'echo x >> count.txt' }), 'Counted.')
  const { id } = await world.session('count')
  const first = await world.open(`/s/${id}`)
  await see(card(first, 'Bash'))
  await first.goto('about:blank')
  const second = await world.open('/inbox')
  await card(second, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(second.getByRole('status').getByText(/^Allowed once by/))
  await world.resting(id)
  await first.goto(`${world.url}/s/${id}`)
  await see(first.getByRole('status').getByText(/^Allowed once by/))
  await see(log(first).getByText('Counted.'))
  await becomes(first, () => first.getByRole('button', { name: 'Allow once' }).count(), 0)
  assert.equal(world.file('count.txt'), 'x\n')
})

journey('two tabs answer at once and one counts', {}, async world => {
  world.model.on('race', call('Bash', { command: 'echo x >> race.txt' }), 'Raced.')
  const { id } = await world.session('race')
  const pages = [await world.open(`/s/${id}`), await world.open(`/s/${id}`)]
  for (const page of pages) await see(card(page, 'Bash'))
  // The button of the slower tab may be gone before its click.
  const answers = [card(pages[0], 'Bash').getByRole('button', { name: 'Allow once' }), card(pages[1], 'Bash').getByRole('button', { name: 'Deny', exact: true })]
  await Promise.race(answers.map((button, index) => Promise.all([button.click().catch(() => {}), see(pages[index].getByRole('status').getByText(/^(Allowed|Denied)/))])))
  await world.resting(id)
  const outcome = page => page.getByRole('status').getByText(/^(Allowed|Denied)/)
  for (const page of pages) await see(outcome(page))
  await becomes(pages[1], () => outcome(pages[1]).textContent(), await outcome(pages[0]).textContent())
  assert.equal((await world.events(id)).filter(event => event.frame.subtype === 'answered').length, 1)
})

journey('J-09 a killed host asks again, once, after Continue', {}, async world => {
  world.model.on('careful', call('Bash', { command: 'echo once >> once.txt' }), 'It is done.')
  const { id } = await world.session('careful')
  const page = await world.open(`/s/${id}`)
  await see(card(page, 'Bash'))
  world.expectedErrors = [/WebSocket|ERR_CONNECTION_REFUSED|Failed to load/]
  await world.stopHost('SIGKILL')
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Reconnecting…'))
  await see(log(page).getByText('careful'))
  await world.startHost()
  const alert = page.getByRole('alert', { name: 'Interrupted by a restart' })
  await alert.getByRole('button', { name: 'Continue' }).click()
  await gone(alert)
  await becomes(page, () => page.getByRole('button', { name: 'Allow once' }).count(), 1)
  await page.getByRole('button', { name: 'Allow once' }).click()
  await see(log(page).getByText('It is done.'))
  assert.equal(world.file('once.txt'), 'once\n')
  await becomes(page, () => log(page).getByRole('article', { name: 'You' }).count(), 1)
})

journey('J-16 five sessions are answered from the inbox', { phone: true }, async world => {
  for (let index = 1; index <= 5; index++) world.model.on(`work ${index}`, call('Bash', { command: `touch file${index}.txt` }), `Ended ${index}.`)
  const sessions = []
  for (let index = 1; index <= 5; index++) {
    const session = await world.session(`work ${index}`)
    sessions.push(session)
    await world.until(session.id, frame => frame.type === 'control_request')
  }
  const page = await world.open('/inbox')
  const list = page.getByRole('list', { name: 'Waiting for you' })
  await eventually(page, async () => await list.getByRole('listitem').count() === 5, 'five wait')
  await see(page.getByRole('link', { name: 'Inbox, 5 waiting' }))
  await becomes(page, () => page.title(), '(5) Whimbrel')
  for (let left = 5; left > 0; left--) {
    const first = list.getByRole('listitem').first()
    await first.getByRole('button', { name: left > 2 ? 'Allow once' : 'Deny', exact: true }).click()
    await eventually(page, async () => await list.getByRole('listitem').count() === left - 1, `${left - 1} wait`)
  }
  await see(page.getByRole('link', { name: 'Inbox', exact: true }))
  await becomes(page, () => page.title(), 'Whimbrel')
  for (const session of sessions) await world.resting(session.id)
  assert.deepEqual([1, 2, 3, 4, 5].map(index => world.exists(`file${index}.txt`)), [true, true, true, false, false])
})

journey('J-30 a card is answered by keyboard alone', { flags: [] }, async world => {
  world.model.on('keys', call('Bash', { command: 'touch keys.txt' }), 'By keyboard.')
  const page = await world.open('/', { options: { reducedMotion: 'reduce' } })
  await see(page.getByText('No sessions yet'))
  await page.keyboard.press('n')
  await see(page.getByRole('region', { name: 'New session' }))
  await eventually(page, async () => await page.evaluate(() => document.activeElement?.getAttribute('aria-label')) === 'Message', 'the message has the focus')
  await page.keyboard.type('keys')
  await page.keyboard.press('Enter')
  await see(card(page, 'Bash'))
  await eventually(page, async () => (await page.locator('[aria-live=assertive]').textContent()).includes('Permission request: Bash'), 'the card is announced')
  assert.equal(await page.evaluate(() => document.activeElement?.closest('.card') ?? null), null, 'a card takes no focus')
  await page.keyboard.press('Enter')
  assert.equal(world.exists('keys.txt'), false)
  await page.evaluate(() => document.activeElement?.blur())
  await page.keyboard.press('j')
  for (const name of ['Allow once', 'Allow for this session', 'Always allow…', 'Deny', 'Deny and stop', 'Edit input']) {
    await eventually(page, async () => {
      if (await page.evaluate(() => document.activeElement?.textContent?.trim()) === name) return true
      await page.keyboard.press('Tab')
      return await page.evaluate(() => document.activeElement?.textContent?.trim()) === name
    }, `${name} is reached by Tab`)
  }
  for (let back = 0; back < 8 && await page.evaluate(() => document.activeElement?.textContent?.trim()) !== 'Allow once'; back++) await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Enter')
  await see(log(page).getByText('By keyboard.'))
  assert.equal(world.exists('keys.txt'), true)
  await page.evaluate(() => document.activeElement?.blur())
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await see(page.getByRole('heading', { name: 'Inbox' }))
  await page.keyboard.press('/')
  await eventually(page, async () => await page.evaluate(() => document.activeElement?.getAttribute('aria-label')) === 'Search sessions', 'the search has the focus')
  // 200 % zoom is half the width in pixels of the page.
  await page.setViewportSize({ width: 640, height: 400 })
  await world.axe(page)
})
