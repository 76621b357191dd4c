"""Examples of what is asked of a memory, and of what is said and asked besides.

They are a scale, not a list to look things up in: `judgement` learns from their vectors what tells the one from the
other, with whatever model makes them. Tasks are on both sides: those that touch something of the user's may need what
is remembered of it.
"""

from __future__ import annotations

__all__ = ["BESIDES", "OWN_TASKS", "QUESTIONS"]

QUESTIONS = (
    "Where did he go to college?", "What's her favourite colour?", "Do they have children?",
    "How old is the user's son?", "What time does she usually get up?", "Which phone does he use?",
    "Who is his manager?", "What does she take with her coffee?", "Where do his parents live?",
    "Is there anything he refuses to eat?", "When is the next appointment with the doctor?",
    "What is the address of the office?", "Which branch do we deploy from?", "Who maintains the payment service?",
    "How do I reach the supplier?", "What did we decide about the logo?", "Why was the launch postponed?",
    "What is the wifi password at the cottage?", "Which framework did the team choose?", "When is rent due?",
    "How does he like his reports formatted?", "What should I call her?", "What hobbies does the user have?",
    "Which medicine is she taking?", "What is the name of the cat?", "How long has he been with the company?",
    "Who looks after the kids on Fridays?", "What are the plans for the summer?", "Which gate code opens the garage?",
    "What should we give him for his birthday?", "Did the customer accept the offer?", "Where are the keys kept?",
    "What happened at the last meeting?", "Which size of shirt fits him?", "How do we name the test files?",
    "What is still open before the release?", "Is the flight already booked?", "Which tea is in the kitchen?",
    "How much did the roof cost?", "Who is coming to dinner?", "他在哪里上的大学？", "她最喜欢什么颜色？",
    "他们有孩子吗？", "用户的儿子多大了？", "她一般几点起床？", "他用什么手机？", "他的上级是谁？",
    "她喝咖啡加什么？", "他爸妈住在哪儿？", "有什么东西他不吃？", "下次看医生是什么时候？", "公司地址在哪里？",
    "我们从哪个分支发布？", "支付服务由谁维护？", "怎么联系供应商？", "标志的事最后怎么定的？", "上线为什么推迟了？",
    "民宿的无线密码是什么？", "团队选了哪个框架？", "房租哪天交？", "报告要写成什么样子？", "该怎么称呼她？",
    "用户有什么爱好？", "她在吃什么药？", "猫叫什么名字？", "他在公司几年了？", "周五谁带孩子？", "夏天有什么计划？",
    "车库的密码是多少？", "生日送他什么好？", "客户接受报价了吗？", "钥匙放在哪里？", "上次会议说了什么？",
    "他穿多大的衬衫？", "测试文件怎么命名？", "发布之前还差什么？", "机票订好了吗？", "厨房里有什么茶？",
    "修屋顶花了多少钱？", "谁来吃晚饭？",
)  # fmt: skip

OWN_TASKS = (
    "Book a table for tonight.", "Add a column to the users table.", "Fix the login bug.", "Deploy it to production.",
    "Review my pull request.", "Prepare the slides for Monday.", "Reply to Anna's mail.", "Plan our trip to Rome.",
    "Order the usual for me.", "Update the readme.", "Set up a meeting with the design team.",
    "Find a present for my sister.", "Refactor this class.", "Draft the monthly report.", "What is my address?",
    "Which editor am I using?", "Why did we drop Redis?", "Can we ship today?", "The nightly job failed again.",
    "I have a meeting in Berlin tomorrow.", "今晚订个位子。", "给用户表加一列。", "修一下登录的问题。",
    "部署到生产环境。", "帮我看看这个合并请求。", "准备周一的幻灯片。", "回一下小安的邮件。",
    "安排我们去成都的行程。", "还是给我点老样子。", "更新一下说明文档。", "约设计组开个会。", "给我妹妹挑个礼物。",
    "重构这个类。", "起草这个月的报告。", "我的地址是什么？", "我用的是哪个编辑器？", "我们为什么不用Redis了？",
    "今天能发版吗？", "夜里的任务又失败了。", "我明天要去北京开会。",
)  # fmt: skip

BESIDES = (
    "What is gravity?", "Who discovered penicillin?", "What is the largest ocean?", "How do magnets work?",
    "Explain the theory of evolution.", "When did the Second World War end?", "What is the chemical formula of salt?",
    "Write a song about winter.", "Write an email asking for a refund.", "Translate this into German.",
    "Fix the grammar in this sentence.", "What is a noun?", "What is 12 percent of 250?",
    "How many feet are in a mile?", "What is a hash table?", "How do I reverse a string in JavaScript?",
    "What is an API?", "How do you bake bread?", "How do I remove a wine stain?",
    "Which is the tallest building in the world?", "Who is the author of Pride and Prejudice?",
    "What is the currency of Japan?", "Why do leaves change colour?", "What is democracy?",
    "Suggest a title for an essay about the sea.", "Make a list of ten animals.", "Give me an example of irony.",
    "Why do cats purr?", "What is the meaning of life?", "Who sang Bohemian Rhapsody?",
    "What are the rules of chess?", "Summarise this article.", "Hi there!", "Good evening.", "Great, thanks.",
    "Okay.", "Yes.", "No, that's wrong.", "Go on.", "I don't understand, please explain.", "You're welcome.",
    "How are you?", "什么是重力？", "青霉素是谁发现的？", "最大的海洋是哪个？", "磁铁的原理是什么？",
    "解释一下进化论。", "二战什么时候结束的？", "食盐的化学式是什么？", "写一首关于冬天的歌。",
    "写一封要求退款的邮件。", "把这个翻译成德语。", "改正这个句子的语法。", "什么是名词？", "250的百分之十二是多少？",
    "一英里等于多少英尺？", "什么是哈希表？", "怎么用JavaScript反转字符串？", "什么是接口？", "面包怎么烤？",
    "红酒渍怎么去掉？", "世界上最高的建筑是哪座？", "《西游记》的作者是谁？", "日本用什么货币？",
    "树叶为什么会变黄？", "什么是民主？", "给一篇关于海的作文起个标题。", "列出十种动物。", "举一个反讽的例子。",
    "猫为什么打呼噜？", "人生的意义是什么？", "《月亮代表我的心》是谁唱的？", "象棋的规则是什么？", "总结这篇文章。",
    "嗨！", "晚上好。", "太棒了，谢谢。", "好。", "是的。", "不，不对。", "接着说。", "我不明白，请解释一下。",
    "不客气。", "你好吗？",
)  # fmt: skip
