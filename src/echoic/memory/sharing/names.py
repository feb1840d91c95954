"""Names people bear: given names and family names common in many countries, folded. Lists only.

They are not all names: a name that is missing is held back by `vocabulary`, which lists what is no name.
These make sure of the names that are words as well ("mark", "rose"), and of those an article may stand
before.
"""

from __future__ import annotations

GIVEN = """
    aaron abby abdul abdullah abigail abraham ada adam adele adrian adriana agnes ahmad ahmed aidan aiden
    aileen aisha akira alan alana albert alberto alec alejandra alejandro alena alessandra alessandro alex
    alexa alexander alexandra alexis alfred alfredo ali alice alicia alina alison allan allen allison alma
    alvin alyssa amal amalia amanda amber amelia amina amir amit amos amy ana anastasia anders andre andrea
    andreas andrei andres andrew andy angel angela angelica angelina angelo angie angus anika anita anjali
    ann anna annabelle anne annette annie anthony antoine anton antonia antonio anya april ariana ariel
    arjun arlene armando arnold art arthur arturo asha ashley ashraf astrid audrey august aurora austin ava
    avi avery axel ayse barbara barry beatrice beatriz becky bella ben benjamin bernadette bernard bert
    bertha beth bethany betty beverly bianca bill billy blake bob bobby bonnie boris brad bradley brandon
    brenda brendan brent brett brian bridget brittany brooke bruce bruno bryan bryce caleb calvin cameron
    camila camille candice carl carla carlo carlos carmen carol carole carolina caroline carolyn carrie
    carter casey cassandra catalina catherine cathy cecilia cedric celeste celia celine cesar chad chandra
    charlene charles charlie charlotte chase chelsea chen cheryl chloe chris christian christina christine
    christopher christy chuck cindy claire clara clarence clark claude claudia claudio clayton cliff
    clifford clint clyde cody cole colin colleen connie connor conrad constance cora corey cory courtney
    craig cristina crystal curtis cynthia daisy dale dalia damian damien dan dana daniel daniela danielle
    danilo danny daphne darius darlene darren dave david dawn dean debbie deborah debra deepak deirdre delia
    denis denise dennis derek desmond devin diana diane diego dieter dimitri dina dirk dmitri dolores
    dominic dominique don donald donna dora doris dorothy doug douglas drew duncan dustin dylan earl ed
    eddie edgar edith edmund eduardo edward edwin eileen elaine eleanor elena eli elias elijah elisa
    elisabeth elise elizabeth ella ellen ellie elliot elliott elsa elvira emil emilia emilio emily emma
    emmanuel enrique enzo eric erica erik erika erin ernest ernesto esteban esther ethan etienne eugene eva
    evan eve evelyn ezra fabian fabio faith farah fatima fatma federica federico felicia felicity felipe
    felix fernanda fernando fiona flora florence florian frances francesca francesco francis francisco
    franco francois frank franklin franz fred freddie frederick frida fritz gabriel gabriela gabriella gail
    galina gareth garrett gary gavin gemma gene geoffrey george georgia gerald gerard gerhard gertrude
    gideon gilbert gina giorgio giovanni gisela giulia giuseppe gladys glen glenn gloria gonzalo gordon
    grace graham grant greg gregory greta gretchen guadalupe guido guillermo gunther gustav gustavo guy gwen
    hailey hal hank hannah hans harold harriet harris harry harvey hassan hazel heather hector heidi
    heinrich helen helena helene helga henri henrik henry herbert herman hilary hilda hiroshi holly hope
    horst howard hubert hugh hugo hussein ian ibrahim ida igor ilana ilse imran ines ingrid irene irina iris
    irma isaac isabel isabella isaiah ismail ivan ivy jack jackie jackson jacob jacqueline jacques jaime
    jake jamal james jamie jan jana jane janet janice jared jasmine jason javier jay jean jeanette jeff
    jeffrey jen jenna jennifer jenny jeremy jerome jerry jesse jessica jessie jesus jill jim jimmy jo joan
    joana joanna joanne joao joaquin jodie joe joel joey johan johanna johannes john johnny jon jonas
    jonathan jordan jorge jose josef joseph josephine josh joshua josie joy joyce juan juana juanita judith
    judy jules julia julian juliana julie juliet julio julius june jurgen justin justine kai kaitlyn kamal
    kamil karen karim karin karina karl karla karolina kate katarina katherine kathleen kathryn kathy katie
    katrina kay kayla keith kelly kelsey ken kendra kenji kenneth kenny kent kerry kevin khalid kim kimberly
    kirk kirsten klaus krishna kristen kristin kristina kumar kurt kyle lana lance lara larissa larry lars
    laszlo laura laurel lauren laurence laurent laurie lawrence lea leah leila lena leo leon leona leonard
    leonardo leonie leroy leslie lester levi lewis li liam lidia lila lilian lillian lily lina linda lindsay
    lindsey lisa liv liz lloyd logan lois lola lorena lorenzo loretta lori lorraine lou louis louisa louise
    luca lucas lucia luciana lucille lucy ludmila ludwig luigi luis luisa lukas luke luna luz lydia lynn
    mackenzie madeleine madison magdalena maggie mahmoud malcolm malik mandy manfred manoj manuel manuela
    mara marc marcel marcela marcella marcelo marcia marco marcos marcus margaret margarita margot maria
    mariam mariana marianne marie mariel marilyn marina mario marion marisa marissa marjorie mark marlene
    marsha marta martha martin martina marty marvin mary maryam mason massimo mateo mathew mathilde matias
    matilda matt matteo matthew matthias maureen maurice mauricio max maxim maxine maya megan mehmet mei
    melanie melinda melissa melody mercedes meredith mia michael michaela michal michel michele michelle
    miguel mikael mike mikhail mila milan mildred miles milena millie milo mimi mina mindy miranda miriam
    misha mitchell mohamed mohammad mohammed moira molly mona monica monika monique morgan moritz morris
    moses moshe muhammad murray mustafa myra nadia nadine nancy naomi natalia natalie natasha nathalie
    nathan nathaniel neil nelson nicholas nick nicola nicolas nicole nigel nikita niklas nikola nikolai nina
    nino noa noah noam noel noelle noemi nora norma norman odette olaf oleg olga oliver olivia olivier omar
    oren orlando oscar osman otto owen pablo paige pamela paola paolo parker pascal pat patience patricia
    patrick patty paul paula paulina pauline paulo pavel pearl pedro peggy penelope penny percy perry peter
    petra phil philip philippa philippe phillip phoebe phyllis pierre pilar piotr polly preston priscilla
    priya quentin quincy rachel rafael raheem rahul rainer raj rajesh ralph ramon ramona randall randy
    raquel rashid raul ravi ray raymond rebecca regina reid reinhard rene renee reuben rex rhonda ricardo
    richard rick ricky riley rita rob robert roberta roberto robin rocco rodney rodrigo roger roland rolf
    roman romeo ron ronald ronnie rosa rosalie rosario rose rosemary rosie ross roxanne roy ruben ruby
    rudolf rudy rufus rupert russell ruth ryan sabine sabrina sadie said sally salma salvador salvatore sam
    samantha samir sammy samuel sandra sandy sanjay santiago sara sarah sasha saul savannah scott sean
    sebastian selena selma serena serge sergei sergio seth shane shannon sharon shaun shauna sheila shelby
    sheldon shelley sherry shirley shlomo sid sidney siegfried sierra sigrid silvia simon simona simone
    sofia solomon sonia sonja sophia sophie stacey stacy stan stanley stefan stefania stefano stella stephan
    stephanie stephen steve steven stewart stuart sue sunil suresh susan susana susanna susanne susie
    suzanne sven svetlana sydney sylvia sylvie tabitha takeshi tamar tamara tamer tammy tania tanya tara
    tariq tatiana taylor ted teresa terence terri terry tess thelma theo theodore theresa therese thomas
    tiffany tim timothy tina tobias toby todd tom tomas tommy tony tracey tracy travis trevor tricia trish
    tristan troy tyler ulrich uma umberto ursula valentina valerie valeria vanessa vera vernon veronica
    vicki vicky victor victoria vijay viktor vince vincent vincenzo viola violet virginia vito vivian
    vladimir wade walter wanda warren wayne wei wendy wesley werner whitney wilfred wilhelm will willa
    william willie wilma winston wolfgang xavier xiao yael yasmin yasmine yolanda yosef yuki yuri yusuf
    yvette yvonne zach zachary zahra zane zara zeev zeynep zoe zoey zoltan
"""
FAMILY = """
    abbott adams agarwal aguilar alvarez andersen anderson andersson armstrong bailey baker banerjee barnes
    bauer becker bell bennett berg bergman bernstein bianchi blum bowman boyd braun brooks brown bryant
    burke burns butler campbell campos carlson carpenter castillo castro chan chang chapman chavez chopra
    chung clarke cohen coleman collins colombo contreras cook cooper costa cox cruz cunningham das davidson
    davies davis delgado desai diaz dietrich dixon dubois dupont edwards ellis eriksson espinoza esposito
    evans fernandes fernandez ferrari ferreira fischer fisher fitzgerald fleming fletcher flores ford foster
    fox freeman friedman fuchs fuentes garcia gardner garza gibson goldberg goldstein gomes gomez gonzales
    gonzalez graf gray green greenberg griffin gupta gutierrez guzman haas hahn hall hamilton hansen hanson
    harper harrison hart hartmann hayes henderson hernandez herrera hill hoffman hoffmann holmes hopkins
    horvath huber hughes hunt hunter hussain ivanov iyer jackson jacobs jacobson jain janssen jenkins jensen
    jimenez johansson johnson johnston jones kaiser kang kaplan kapoor kaufman keller kennedy khan khanna
    klein knight koch kohler kovacs kowalski kramer kraus krause kruger lang lange larsen larson lee lefevre
    lehmann lemieux leroy levin levine levy lim lin liu lombardi lopez lorenz maier martinez marino marquez
    marshall martins mason matthews mccarthy mcdonald mckenzie medina mehta meier mendez mendoza meyer
    miller mills mitchell molina moore morales moreau moreno moretti mukherjee muller murphy myers nair
    nakamura navarro nelson neumann newman nguyen nielsen novak novotny nowak oconnor olsen olson ortega
    ortiz palmer papadopoulos park parker patel patil patterson payne peng pereira perez perkins peters
    petersen petrov pham phillips popescu popov porter powell price ramirez ramos rao reddy reed reyes
    reynolds ribeiro ricci richards richardson richter rivera roberts robertson robinson rodrigues rodriguez
    rogers rojas romano romero rosenberg rossi roth rousseau ruiz russo ryan salazar sanchez sanders santos
    sato schmid schmidt schmitt schneider scholz schroeder schubert schulz schwartz schwarz shah shapiro
    sharma shaw silva simmons simpson singh smirnov smith snyder soares sokolov sousa spencer stein stern
    stevens stevenson sullivan suzuki svensson takahashi tanaka taylor teixeira thompson tran tremblay
    tucker turner vargas vasquez vega vogel volkov wagner walker wallace walsh wang ward watanabe watson
    weber webb weiss wells west wheeler white williams williamson wilson winkler wolf wong wood woods wright
    wu xu yamamoto yang yilmaz young zhang zhao zhou ziegler zimmerman zimmermann
"""

NAMES = frozenset(f"{GIVEN} {FAMILY}".split())

__all__ = ["NAMES"]
